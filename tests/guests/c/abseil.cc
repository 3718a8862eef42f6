// Finds clock_gettime with abseil's own reader of vDSO images.
#include <stdio.h>
#include <time.h>

#include "absl/debugging/internal/vdso_support.h"

int main()
{
    absl::debugging_internal::VDSOSupport vdso;
    absl::debugging_internal::VDSOSupport::SymbolInfo found;
    timespec now = {0, 0};

    if (!vdso.IsPresent())
        return 1;
    if (vdso.LookupSymbol("__vdso_clock_gettime", "LINUX_2.6.39", STT_FUNC, &found))
        return 2;
    if (!vdso.LookupSymbol("__vdso_clock_gettime", "LINUX_2.6", STT_FUNC, &found))
        return 3;
    absl::debugging_internal::VDSOSupport::SymbolInfo around;
    const char *inside = static_cast<const char *>(found.address) + 4;
    if (!vdso.LookupSymbolByAddress(inside, &around) || around.address != found.address)
        return 4;
    auto call = reinterpret_cast<long (*)(int, timespec *)>(const_cast<void *>(found.address));
    for (int round = 0; round < 1000; round++)
        if (call(CLOCK_REALTIME, &now))
            return 5;
    printf("realtime %lld.%09ld\n", static_cast<long long>(now.tv_sec), now.tv_nsec);
    return 0;
}
