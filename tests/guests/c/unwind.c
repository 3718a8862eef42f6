/*
 * Spends its time in the functions of the image, to be looked at from outside or from a signal
 * handler.
 *
 *   unwind profile PAGE   counts how often a profiler's handler finds its way from the image to main
 *   unwind wait PAGE FILE writes its pid to FILE, then calls each function again and again
 *
 * PAGE is "given", or "odd": then it puts a page of its own in place of the one it was given, one
 * whose writer died in the middle of an update, so that every call waits, gives up and falls back.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { PAGE = 4096, SLOTS = 4, IMAGE_PAGES = 2, ENOUGH = 200 };

/* Where main is: the linker names the ends of a section whose name is an identifier. */
extern const char __start_main_code[], __stop_main_code[];

static const char *image;
static volatile sig_atomic_t inside, reached;

static int in_image(const void *at)
{
    return (const char *)at >= image && (const char *)at < image + IMAGE_PAGES * PAGE;
}

static int in_main(const void *at)
{
    return (const char *)at >= __start_main_code && (const char *)at < __stop_main_code;
}

/* Main has to be what called the image: a guess may lead to it as well, by way of other places. */
static void profiled(int signal, siginfo_t *info, void *context)
{
    const ucontext_t *interrupted = context;
    void *frames[64];

    (void)signal;
    (void)info;
    if (!in_image((const void *)interrupted->uc_mcontext.gregs[REG_RIP]))
        return;
    inside++;
    int count = backtrace(frames, 64), at = 0;
    while (at < count && !in_image(frames[at]))
        at++;
    while (at < count && in_image(frames[at]))
        at++;
    if (at < count && in_main(frames[at]))
        reached++;
}

static void replace_page(void)
{
    void *data = (void *)(image - SLOTS * PAGE);
    uint32_t *page = mmap(data, PAGE, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

    if (page == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    page[0] = 1;
    page[1] = 1;
}

__attribute__((section("main_code"), noinline)) int main(int argc, char **argv)
{
    struct timespec ts;
    struct timeval tv;
    unsigned cpu;
    int64_t seconds;
    void *backtraced[8];
    void *vdso = dlopen("linux-vdso.so.1", RTLD_NOW);

    image = (const char *)getauxval(AT_SYSINFO_EHDR);
    if (argc < 3 || !vdso)
        return 2;
    long (*gettime)(int, void *) = (long (*)(int, void *))dlsym(vdso, "__vdso_clock_gettime");
    long (*getres)(int, void *) = (long (*)(int, void *))dlsym(vdso, "__vdso_clock_getres");
    long (*today)(void *, void *) = (long (*)(void *, void *))dlsym(vdso, "__vdso_gettimeofday");
    long (*now)(void *) = (long (*)(void *))dlsym(vdso, "__vdso_time");
    long (*where)(void *, void *, void *) =
        (long (*)(void *, void *, void *))dlsym(vdso, "__vdso_getcpu");
    long (*nanos)(int) = (long (*)(int))dlsym(vdso, "__vdso_clock_gettime_ns");
    if (!gettime || !getres || !today || !now || !where || !nanos)
        return 3;
    if (!strcmp(argv[2], "odd"))
        replace_page();
    /* The first use loads the unwinder. */
    backtrace(backtraced, 8);
    if (!strcmp(argv[1], "profile")) {
        struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART};
        struct itimerval often = {{0, 1000}, {0, 1000}};

        action.sa_sigaction = profiled;
        sigaction(SIGPROF, &action, NULL);
        setitimer(ITIMER_PROF, &often, NULL);
    } else if (argc == 4) {
        FILE *told = fopen(argv[3], "w");

        if (!told || fprintf(told, "%d\n", (int)getpid()) < 0 || fclose(told))
            return 4;
        alarm(120);
    }
    while (inside < ENOUGH) {
        for (int id = 0; id < 12; id++) {
            gettime(id, &ts);
            nanos(id);
            getres(id, &ts);
        }
        today(&tv, NULL);
        now(&seconds);
        where(&cpu, NULL, NULL);
    }
    printf("inside %d reached %d\n", (int)inside, (int)reached);
    return 0;
}
