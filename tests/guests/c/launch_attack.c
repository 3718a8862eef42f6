/*
 * Tries to change the page from a program that runs on it, in every way that an ordinary user has.
 *
 * launch_attack: attacks its own mapping, its parent (the command) and that one's other children
 * (the keeper, the next one, the tracer). Prints a line for each attempt that succeeded; exits with 0
 * if there were three of these and no attempt succeeded.
 *
 * launch_attack --control: attacks a child that has no protection, the same way.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int succeeded;
static int attempts;

static void outcome(const char *what, long process, int success)
{
    attempts++;
    if (success) {
        succeeded++;
        printf("SUCCEEDED: %s (process %ld)\n", what, process);
    }
}

/* The data page lies four slots of 4096 bytes below the image. */
static char *page(void) { return (char *)getauxval(AT_SYSINFO_EHDR) - 4 * 4096; }

static void on_descriptor(const char *how, long process, int fd)
{
    char what[128];
    snprintf(what, sizeof what, "write through %s", how);
    outcome(what, process, pwrite(fd, "x", 1, 0) == 1);
    snprintf(what, sizeof what, "truncate through %s", how);
    outcome(what, process, ftruncate(fd, 0) == 0);
    snprintf(what, sizeof what, "grow through %s", how);
    outcome(what, process, ftruncate(fd, 1 << 20) == 0);
    snprintf(what, sizeof what, "punch a hole through %s", how);
    outcome(what, process, fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0);
    snprintf(what, sizeof what, "map for writing through %s", how);
    void *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    outcome(what, process, mapped != MAP_FAILED);
    snprintf(what, sizeof what, "map for reading through %s and make writable", how);
    mapped = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (mapped != MAP_FAILED)
        outcome(what, process, mprotect(mapped, 4096, PROT_READ | PROT_WRITE) == 0);
}

static void own_mapping(void)
{
    char before[512], name[64];
    memcpy(before, page(), sizeof before);
    for (int slot = 0; slot < 4; slot++)
        outcome("mprotect of a slot", 0, mprotect(page() + slot * 4096, 4096, PROT_READ | PROT_WRITE) == 0);
    int memory = open("/proc/self/mem", O_RDWR);
    if (memory >= 0)
        outcome("/proc/self/mem", 0, pwrite(memory, "x", 1, (off_t)page()) == 1);
    struct iovec local = {"x", 1}, remote = {page(), 1};
    outcome("process_vm_writev to itself", 0, process_vm_writev(getpid(), &local, 1, &remote, 1, 0) == 1);
    outcome("mremap with a writable duplicate", 0,
            ({ void *copy = mremap(page(), 0, 4096, MREMAP_MAYMOVE);
               copy != MAP_FAILED && mprotect(copy, 4096, PROT_READ | PROT_WRITE) == 0; }));
    outcome("madvise that drops the contents", 0, madvise(page(), 4096, MADV_REMOVE) == 0);
    snprintf(name, sizeof name, "/proc/self/map_files/%lx-%lx", (long)page(), (long)page() + 4 * 4096);
    int file = open(name, O_RDWR);
    if (file >= 0)
        on_descriptor("its own map_files", 0, file);
    file = open(name, O_RDONLY);
    if (file >= 0)
        on_descriptor("its own map_files, read-only", 0, file);
    /* The keeper itself may have written meanwhile; the mark must not be there. */
    outcome("a write that nobody refused", 0, page()[256] != before[256]);
}

static void process(long pid)
{
    char name[64], path[512];
    struct iovec local = {name, 1}, remote = {page(), 1};
    outcome("PTRACE_SEIZE", pid, ptrace(PTRACE_SEIZE, pid, 0, 0) == 0);
    outcome("PTRACE_ATTACH", pid, ptrace(PTRACE_ATTACH, pid, 0, 0) == 0);
    outcome("process_vm_readv", pid,
            process_vm_readv(pid, &local, 1, &remote, 1, 0) == 1 || (errno != EPERM && errno != ESRCH));
    outcome("process_vm_writev", pid,
            process_vm_writev(pid, &local, 1, &remote, 1, 0) == 1 || (errno != EPERM && errno != ESRCH));
    snprintf(name, sizeof name, "/proc/%ld/mem", pid);
    outcome("/proc/PID/mem for writing", pid, open(name, O_RDWR) >= 0);
    outcome("/proc/PID/mem for reading", pid, open(name, O_RDONLY) >= 0);
    snprintf(name, sizeof name, "/proc/%ld/maps", pid);
    outcome("/proc/PID/maps", pid, open(name, O_RDONLY) >= 0);
    snprintf(name, sizeof name, "/proc/%ld/fd", pid);
    DIR *descriptors = opendir(name);
    outcome("listing /proc/PID/fd", pid, descriptors != NULL);
    for (int fd = 0; fd < 64; fd++) {
        snprintf(path, sizeof path, "/proc/%ld/fd/%d", pid, fd);
        int opened = open(path, O_RDWR);
        outcome("opening /proc/PID/fd/N", pid, opened >= 0);
        if (opened >= 0)
            on_descriptor("/proc/PID/fd/N", pid, opened);
    }
    int handle = (int)syscall(SYS_pidfd_open, pid, 0);
    for (int fd = 0; handle >= 0 && fd < 64; fd++) {
        int taken = (int)syscall(SYS_pidfd_getfd, handle, fd, 0);
        outcome("pidfd_getfd", pid, taken >= 0);
        if (taken >= 0)
            on_descriptor("pidfd_getfd", pid, taken);
    }
}

/* The other children of this process's parent. */
static int siblings(long *found, int room)
{
    DIR *all = opendir("/proc");
    int count = 0;
    for (struct dirent *entry; all && (entry = readdir(all));) {
        char name[300], text[512] = "";
        long pid = atol(entry->d_name), parent = 0;
        snprintf(name, sizeof name, "/proc/%s/stat", entry->d_name);
        FILE *file = pid ? fopen(name, "r") : NULL;
        if (!file)
            continue;
        char *rest = fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL;
        if (rest)
            sscanf(rest, ") %*c %ld", &parent);
        if (parent == getppid() && pid != getpid() && count < room)
            found[count++] = pid;
        fclose(file);
    }
    return count;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--control") == 0) {
        pid_t child = fork();
        if (child == 0)
            for (;;)
                pause();
        process(child);
        kill(child, SIGKILL);
    } else {
        long others[8];
        int count = siblings(others, 8);
        /* The next keeper starts beside this program. */
        for (int tries = 0; count < 3 && tries < 1000; tries++) {
            usleep(10000);
            count = siblings(others, 8);
        }
        own_mapping();
        process(getppid());
        for (int at = 0; at < count; at++)
            process(others[at]);
        if (count != 3)
            printf("SUCCEEDED in nothing: %d processes beside the program, not 3\n", count), succeeded++;
    }
    printf("%d attempts, %d succeeded\n", attempts, succeeded);
    return succeeded != 0;
}
