/*
 * Tries to change the page from a program that runs on it, in every way that an ordinary user has.
 *
 * launch_attack COUNT: attacks its own mapping, the descriptor that a program of its own has for a
 * moment at its exec, its parent (the command) and that one's COUNT other children (the keeper, the
 * next one, the tracer).
 *
 * launch_attack --control: attacks a page that has no protection, its own and that of a child, the
 * same way.
 *
 * Prints a line for each kind of attempt: how often it was made, how often it succeeded. Exits with 0
 * if no attempt succeeded, with 1 if one did, with 2 if not all could be attacked.
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    SLOT = 4096,
    SLOTS = 4,
    /* Where nobody writes: the data of the page end far below. */
    MARK = 4000,
    /* Descriptors that a process of ours may have. */
    DESCRIPTORS = 64,
};

static struct {
    char what[96];
    int made, succeeded;
} kinds[96];

/* The page under attack: slots that end where the image begins, or a page of the control. */
static char *page;

/* What the file behind it is called. */
static const char *file_name = "/memfd:uvdso";

static void outcome(const char *what, int success)
{
    unsigned at = 0;
    while (kinds[at].what[0] && strcmp(kinds[at].what, what))
        at++;
    snprintf(kinds[at].what, sizeof kinds[at].what, "%s", what);
    kinds[at].made++;
    kinds[at].succeeded += success;
}

static void outcome_through(const char *what, const char *how, int success)
{
    char all[96];
    snprintf(all, sizeof all, "%s through %s", what, how);
    outcome(all, success);
}

/* Whether a descriptor is one of the file of the page. */
static int is_file(int fd)
{
    char path[64], name[256] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return readlink(path, name, sizeof name - 1) > 0 && strncmp(name, file_name, strlen(file_name)) == 0;
}

static void on_descriptor(const char *how, int fd)
{
    if (!is_file(fd))
        return;
    outcome_through("write", how, pwrite(fd, "x", 1, MARK) == 1);
    struct iovec vector = {"x", 1};
    outcome_through("writev", how, pwritev(fd, &vector, 1, MARK) == 1);
    void *mapped = mmap(NULL, SLOT, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    outcome_through("map for writing", how, mapped != MAP_FAILED);
    mapped = mmap(NULL, SLOT, PROT_READ, MAP_SHARED, fd, 0);
    outcome_through("map for reading and make writable", how,
                    mapped != MAP_FAILED && mprotect(mapped, SLOT, PROT_READ | PROT_WRITE) == 0);
    outcome_through("punch a hole", how,
                    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, SLOT) == 0);
    outcome_through("truncate", how, ftruncate(fd, 0) == 0);
    outcome_through("grow", how, ftruncate(fd, 1 << 20) == 0);
}

/* The same file, opened anew for writing. */
static void reopened(const char *how, int fd)
{
    char path[64], what[96];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    snprintf(what, sizeof what, "%s, reopened", how);
    int again = open(path, O_RDWR);
    if (again < 0)
        again = open(path, O_WRONLY);
    if (again >= 0)
        on_descriptor(what, again);
    else
        outcome_through("nothing", what, 0);
    close(again);
    snprintf(what, sizeof what, "truncate at opening %s", how);
    again = is_file(fd) ? open(path, O_RDWR | O_TRUNC) : -1;
    outcome(what, again >= 0);
    if (again >= 0)
        ftruncate(again, 1 << 20);
    close(again);
}

static int poke(pid_t child)
{
    int status, done = ptrace(PTRACE_SEIZE, child, 0, 0) == 0 && ptrace(PTRACE_INTERRUPT, child, 0, 0) == 0 &&
                       waitpid(child, &status, 0) == child && ptrace(PTRACE_POKEDATA, child, page + MARK, 1L) == 0;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return done;
}

static pid_t idle(void)
{
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    return child;
}

static void own_mapping(void)
{
    char name[64];
    for (int slot = 0; slot < SLOTS; slot++)
        outcome("mprotect of a slot", mprotect(page + slot * SLOT, SLOT, PROT_READ | PROT_WRITE) == 0);
    int memory = open("/proc/self/mem", O_RDWR);
    outcome("/proc/self/mem", memory >= 0 && pwrite(memory, "x", 1, (off_t)(page + MARK)) == 1);
    struct iovec local = {"x", 1}, remote = {page + MARK, 1};
    outcome("process_vm_writev to itself", process_vm_writev(getpid(), &local, 1, &remote, 1, 0) == 1);
    outcome("ptrace of a child, which has the mapping too", poke(idle()));
    void *copy = mremap(page, 0, SLOT, MREMAP_MAYMOVE);
    outcome("mremap with a writable duplicate",
            copy != MAP_FAILED && mprotect(copy, SLOT, PROT_READ | PROT_WRITE) == 0);
    outcome("madvise that drops the contents", madvise(page, SLOT, MADV_REMOVE) == 0);
    snprintf(name, sizeof name, "/proc/self/map_files/%lx-%lx", (long)page, (long)page + SLOTS * SLOT);
    int file = open(name, O_RDWR);
    outcome("opening its own map_files for writing", file >= 0);
    if (file >= 0)
        on_descriptor("its own map_files", file);
    file = open(name, O_RDONLY);
    outcome("opening its own map_files", file >= 0);
    if (file >= 0)
        reopened("its own map_files, read-only", file);
}

/* Attacks the descriptor number `fd` of a child, if that is the file; returns whether it was. */
static int steal_from(pid_t child, int fd)
{
    static int opened_done, taken_done;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", child, fd);
    int opened = opened_done ? -1 : open(path, O_RDONLY);
    if (opened >= 0 && is_file(opened)) {
        opened_done = 1;
        reopened("a child's descriptor", opened);
    }
    close(opened);
    int handle = taken_done ? -1 : (int)syscall(SYS_pidfd_open, child, 0);
    int taken = handle < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, handle, fd, 0);
    if (taken >= 0 && is_file(taken)) {
        taken_done = 1;
        on_descriptor("a child's descriptor, taken", taken);
        reopened("a child's descriptor, taken", taken);
    }
    close(taken);
    close(handle);
    return opened_done && taken_done;
}

/*
 * A program gets the file for the time of its exec, and its parent may look into it: the one moment at
 * which an ordinary user comes by a descriptor of the file.
 */
static int steal(const char *self)
{
    for (int tries = 0; tries < 5000; tries++) {
        pid_t child = fork();
        if (child == 0) {
            execl(self, self, "--nothing", NULL);
            _exit(1);
        }
        int stolen = 0, status;
        while (!stolen && waitpid(child, &status, WNOHANG) == 0)
            for (int fd = 3; fd < 8 && !stolen; fd++)
                stolen = steal_from(child, fd);
        if (stolen) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            return 1;
        }
    }
    return 0;
}

/* A process that lets this one look into it answers, if only that there is nothing at an address. */
static int answered(ssize_t bytes) { return bytes == 1 || (errno != EPERM && errno != ESRCH); }

static void process(pid_t pid)
{
    char name[64], path[512];
    int status;
    int seized = ptrace(PTRACE_SEIZE, pid, 0, 0) == 0;
    outcome("PTRACE_SEIZE", seized);
    if (seized && ptrace(PTRACE_INTERRUPT, pid, 0, 0) == 0 && waitpid(pid, &status, __WALL) == pid)
        ptrace(PTRACE_DETACH, pid, 0, 0);
    int attached = ptrace(PTRACE_ATTACH, pid, 0, 0) == 0;
    outcome("PTRACE_ATTACH", attached);
    if (attached && waitpid(pid, &status, __WALL) == pid)
        ptrace(PTRACE_DETACH, pid, 0, 0);
    struct iovec local = {name, 1}, remote = {page + MARK, 1};
    outcome("process_vm_readv", answered(process_vm_readv(pid, &local, 1, &remote, 1, 0)));
    outcome("process_vm_writev", answered(process_vm_writev(pid, &local, 1, &remote, 1, 0)));
    snprintf(name, sizeof name, "/proc/%d/mem", pid);
    outcome("/proc/PID/mem for writing", open(name, O_RDWR) >= 0);
    outcome("/proc/PID/mem for reading", open(name, O_RDONLY) >= 0);
    snprintf(name, sizeof name, "/proc/%d/maps", pid);
    outcome("/proc/PID/maps", open(name, O_RDONLY) >= 0);
    snprintf(name, sizeof name, "/proc/%d/map_files", pid);
    outcome("listing /proc/PID/map_files", opendir(name) != NULL);
    snprintf(name, sizeof name, "/proc/%d/fd", pid);
    outcome("listing /proc/PID/fd", opendir(name) != NULL);
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
        int opened = open(path, O_RDWR);
        outcome("opening /proc/PID/fd/N", opened >= 0);
        if (opened >= 0)
            on_descriptor("/proc/PID/fd/N", opened);
        close(opened);
    }
    int handle = (int)syscall(SYS_pidfd_open, pid, 0);
    for (int fd = 0; handle >= 0 && fd < DESCRIPTORS; fd++) {
        int taken = (int)syscall(SYS_pidfd_getfd, handle, fd, 0);
        outcome("pidfd_getfd", taken >= 0);
        if (taken >= 0)
            on_descriptor("pidfd_getfd", taken);
        close(taken);
    }
}

/* The other children of this process's parent. */
static int siblings(pid_t *found, int room)
{
    DIR *all = opendir("/proc");
    int count = 0;
    for (struct dirent *entry; all && (entry = readdir(all));) {
        char name[300], text[512] = "", state = 'Z';
        pid_t pid = atoi(entry->d_name), parent = 0;
        snprintf(name, sizeof name, "/proc/%s/stat", entry->d_name);
        FILE *file = pid ? fopen(name, "r") : NULL;
        if (!file)
            continue;
        char *rest = fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL;
        if (rest)
            sscanf(rest, ") %c %d", &state, &parent);
        if (parent == getppid() && pid != getpid() && state != 'Z' && count < room)
            found[count++] = pid;
        fclose(file);
    }
    if (all)
        closedir(all);
    return count;
}

/*
 * Whoever succeeds in stopping the tracer can wait for it for ever, stopped by it: this ends the program
 * in any case.
 */
static void end_in(int seconds)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct itimerspec once = {.it_value.tv_sec = seconds};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &once, NULL))
        abort();
}

static int attack(const char *self, int wanted)
{
    pid_t others[8];
    end_in(30);
    page = (char *)getauxval(AT_SYSINFO_EHDR) - SLOTS * SLOT;
    /* The next keeper starts beside this program. */
    int count = 0;
    for (int tries = 0; count != wanted && tries < 1000; tries++) {
        usleep(10000);
        count = siblings(others, 8);
    }
    own_mapping();
    process(getppid());
    for (int at = 0; at < count; at++)
        process(others[at]);
    if (count != wanted)
        printf("%d processes beside the program, not %d\n", count, wanted);
    /* Programs that are let go are not given the file at an exec: two processes serve them. */
    const int is_followed = wanted == 3;
    const int stolen = !is_followed || steal(self);
    if (!stolen)
        printf("no descriptor of the file was ever seen\n");
    return count == wanted && stolen;
}

static int control(void)
{
    file_name = "/memfd:control";
    int file = memfd_create("control", MFD_ALLOW_SEALING);
    if (file < 0 || ftruncate(file, SLOTS * SLOT) || pwrite(file, "o", 1, MARK) != 1)
        return 0;
    page = mmap(NULL, SLOTS * SLOT, PROT_READ, MAP_SHARED, file, 0);
    if (page == MAP_FAILED)
        return 0;
    own_mapping();
    pid_t child = idle();
    process(child);
    const int stolen = steal_from(child, file);
    kill(child, SIGKILL);
    return stolen;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    if (!strcmp(argv[1], "--nothing"))
        return 0;
    const int is_control = !strcmp(argv[1], "--control");
    const int all = is_control ? control() : attack(argv[0], atoi(argv[1]));
    outcome("a mark on the page", page[MARK] != (is_control ? 'o' : 0));
    int succeeded = 0;
    for (unsigned at = 0; kinds[at].what[0]; at++) {
        printf("%s: %d made, %d succeeded\n", kinds[at].what, kinds[at].made, kinds[at].succeeded);
        succeeded += kinds[at].succeeded;
    }
    return !all ? 2 : succeeded != 0;
}
