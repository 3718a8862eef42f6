/*
 * Reads every clock that a vDSO serves, many times, and prints the last value of each as a line
 * "key seconds.nanoseconds". Going back is a failure where a clock cannot.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>

enum { ROUNDS = 1000 };

static const struct { const char *key; int id; } clocks[] = {
    {"realtime", 0},
    {"monotonic", 1},
    {"monotonic_raw", 4},
    {"realtime_coarse", 5},
    {"monotonic_coarse", 6},
    {"boottime", 7},
    {"tai", 11},
};

static int read_clock(const char *key, int id)
{
    struct timespec last = {0, 0}, now;

    /* A call that succeeds leaves errno alone. */
    errno = 77;
    for (int round = 0; round < ROUNDS; round++) {
        if (clock_gettime(id, &now)) {
            perror(key);
            return 1;
        }
        if (now.tv_nsec < 0 || now.tv_nsec > 999999999)
            return fprintf(stderr, "%s has %ld nanoseconds\n", key, now.tv_nsec);
        if (id == 1 || id == 4 || id == 6 || id == 7)
            if (now.tv_sec < last.tv_sec ||
                (now.tv_sec == last.tv_sec && now.tv_nsec < last.tv_nsec))
                return fprintf(stderr, "%s went back\n", key);
        last = now;
    }
    if (errno != 77)
        return fprintf(stderr, "%s changed errno to %d\n", key, errno);
    printf("%s %lld.%09ld\n", key, (long long)last.tv_sec, last.tv_nsec);
    return 0;
}

/* A clock of the last tick is never ahead of the precise one that is read after it. */
static int read_pairs(void)
{
    static const int pairs[][2] = {{5, 0}, {6, 1}};
    struct timespec coarse, precise;

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 2; i++) {
            if (clock_gettime(pairs[i][0], &coarse) || clock_gettime(pairs[i][1], &precise))
                return 1;
            if (coarse.tv_sec > precise.tv_sec ||
                (coarse.tv_sec == precise.tv_sec && coarse.tv_nsec > precise.tv_nsec))
                return fprintf(stderr, "clock %d is ahead of %d\n", pairs[i][0], pairs[i][1]);
        }
        time_t seconds = time(NULL);
        if (clock_gettime(0, &precise) || seconds > precise.tv_sec)
            return fprintf(stderr, "time() is ahead\n");
    }
    return 0;
}

int main(void)
{
    struct timeval tv = {0, 0};
    time_t seconds = 0;

    for (unsigned i = 0; i < sizeof(clocks) / sizeof(*clocks); i++)
        if (read_clock(clocks[i].key, clocks[i].id))
            return 1;
    if (read_pairs())
        return 1;
    for (int round = 0; round < ROUNDS; round++)
        if (gettimeofday(&tv, NULL))
            return 1;
    printf("micros %lld.%06ld\n", (long long)tv.tv_sec, (long)tv.tv_usec);
    for (int round = 0; round < ROUNDS; round++)
        seconds = time(NULL);
    printf("seconds %lld\n", (long long)seconds);
#ifdef __GLIBC__
    /* sched_getcpu() asks the thread's restartable sequence; getcpu() asks the vDSO. */
    unsigned cpu = ~0u, node = ~0u;
    for (int round = 0; round < ROUNDS; round++)
        if (getcpu(&cpu, &node))
            return 1;
    printf("cpu %u\n", cpu);
#elif !defined(__dietlibc__)
    int cpu = -1;
    for (int round = 0; round < ROUNDS; round++)
        cpu = sched_getcpu();
    if (cpu < 0)
        return 1;
    printf("cpu %d\n", cpu);
#endif
#ifndef __dietlibc__
    struct timespec resolution;
    for (int round = 0; round < ROUNDS; round++)
        if (clock_getres(CLOCK_MONOTONIC, &resolution))
            return 1;
    printf("resolution %lld.%09ld\n", (long long)resolution.tv_sec, resolution.tv_nsec);
#endif
    return 0;
}
