/*
 * Reads the clocks for a while, as a program that must not be hurt by what happens to the
 * processes around it.
 *
 * launch_clocks FILE MILLISECONDS: writes its parent's and its own id to FILE, then one line to
 * standard output: the longest call, the longest time that a coarse clock stood still (from after
 * the first to before the last read of one value, so that a program that is taken off its CPU does
 * not count) and the same of time(), how far the precise clock is from the kernel's at the end, and by how much the precise
 * and the coarse clock went back at most.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long long nanos(struct timespec at) { return at.tv_sec * 1000000000LL + at.tv_nsec; }

static long long kernel(clockid_t clock)
{
    struct timespec at;
    syscall(SYS_clock_gettime, clock, &at);
    return nanos(at);
}

static long long page(clockid_t clock)
{
    struct timespec at;
    clock_gettime(clock, &at);
    return nanos(at);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    FILE *file = fopen(argv[1], "w");
    if (!file)
        return 2;
    fprintf(file, "%d %d\n", getppid(), getpid());
    fclose(file);

    const long long begin = kernel(CLOCK_MONOTONIC), end = begin + atoll(argv[2]) * 1000000;
    long long longest = 0, still = 0, moved = begin, back = 0, coarse_back = 0;
    long long coarse = 0, precise = 0, time_still = 0, time_moved = begin;
    time_t seconds = 0;
    for (long long now = begin; now < end;) {
        long long before = kernel(CLOCK_MONOTONIC);
        long long next = page(CLOCK_MONOTONIC_COARSE);
        long long fine = page(CLOCK_MONOTONIC);
        time_t next_seconds = time(NULL);
        long long after = kernel(CLOCK_MONOTONIC);
        if (next_seconds != seconds)
            time_moved = after;
        else if (before - time_moved > time_still)
            time_still = before - time_moved;
        seconds = next_seconds;
        if (next != coarse)
            moved = after;
        else if (before - moved > still)
            still = before - moved;
        if (precise - fine > back)
            back = precise - fine;
        if (coarse - next > coarse_back)
            coarse_back = coarse - next;
        coarse = next;
        precise = fine;
        if (after - now > longest)
            longest = after - now;
        usleep(200);
        now = kernel(CLOCK_MONOTONIC);
    }
    /* Outside of two system calls by how much, in the narrowest of some pairs. */
    long long off = 0, narrowest = 1LL << 62;
    for (int tries = 0; tries < 16; tries++) {
        long long before = kernel(CLOCK_MONOTONIC), fine = page(CLOCK_MONOTONIC);
        long long after = kernel(CLOCK_MONOTONIC);
        if (after - before < narrowest) {
            narrowest = after - before;
            off = fine < before ? fine - before : fine > after ? fine - after : 0;
        }
    }
    printf("longest %lld still %lld time-still %lld off %lld back %lld coarse-back %lld\n", longest, still,
           time_still, off, back, coarse_back);
    return 0;
}
