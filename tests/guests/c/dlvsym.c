/*
 * Opens the vDSO by its name and asks the dynamic loader for functions by version: each is there in
 * its own version and in no other.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

typedef long gettime(int, struct timespec *);
typedef long long gettime_ns(int);

int main(void)
{
    struct timespec now = {0, 0};
    void *image = dlopen("linux-vdso.so.1", RTLD_NOW);

    if (!image)
        return fprintf(stderr, "%s\n", dlerror());
    gettime *call = (gettime *)dlvsym(image, "__vdso_clock_gettime", "LINUX_2.6");
    gettime *plain = (gettime *)dlvsym(image, "clock_gettime", "LINUX_2.6");
    if (!call || plain != call)
        return fprintf(stderr, "LINUX_2.6: %p %p\n", (void *)call, (void *)plain);
    if (dlvsym(image, "__vdso_clock_gettime", "LINUX_2.6.39"))
        return fprintf(stderr, "found in a version of another architecture\n");
    if ((gettime *)dlsym(image, "__vdso_clock_gettime") != call)
        return fprintf(stderr, "not found without a version\n");
    gettime_ns *register_call =
        (gettime_ns *)dlvsym(image, "__vdso_clock_gettime_ns", "UVDSO_1");
    if (!register_call || dlvsym(image, "__vdso_clock_gettime_ns", "LINUX_2.6"))
        return fprintf(stderr, "the extension is not in its own version alone\n");
    for (int round = 0; round < 1000; round++)
        if (call(CLOCK_REALTIME, &now))
            return 1;
    printf("realtime %lld.%09ld\n", (long long)now.tv_sec, now.tv_nsec);
    long long nanos = register_call(CLOCK_MONOTONIC);
    printf("monotonic %lld.%09lld\n", nanos / 1000000000, nanos % 1000000000);
    return 0;
}
