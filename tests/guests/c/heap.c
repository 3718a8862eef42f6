/*
 * Grows its heap by a gigabyte, as far as the next mapping lets it, and tells the time with memory
 * on both ends of it: an image that was put where a heap grows would be hit.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STEP = 1 << 20, STEPS = 1024 };

int main(void)
{
    struct timespec now;
    char *start = sbrk(0);

    for (int step = 0; step < STEPS; step++) {
        char *grown = sbrk(STEP);
        if (grown == (void *)-1) {
            perror("sbrk");
            return 1;
        }
        memset(grown, step, 4096);
        if (clock_gettime(CLOCK_REALTIME, &now))
            return 2;
    }
    for (int step = 0; step < STEPS; step++)
        if (start[(long)step * STEP] != (char)step)
            return 3;
    printf("realtime %lld.%09ld\n", (long long)now.tv_sec, now.tv_nsec);
    return 0;
}
