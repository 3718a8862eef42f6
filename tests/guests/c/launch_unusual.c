/*
 * Programs that do unusual things to themselves, by the first argument. Most then exec what
 * follows, or tell the time:
 *
 * launch_unusual show                   seconds of REALTIME, and whether it is on the image
 * launch_unusual words [WORD...]        a sum of the words and of its environment, and shows
 * launch_unusual fixed PROGRAM...       no randomised addresses, where that is allowed
 * launch_unusual storm N                N children that end at once
 * launch_unusual forks N                N children, each of which reads the clocks; prints how many had the right
 *                                       ones, and shows
 * launch_unusual place                  by how many nanoseconds REALTIME is ahead of the kernel's, from which file, and
 *                                       shows
 * launch_unusual untraced PROGRAM...    a child that hides from tracers
 * launch_unusual stops N PROGRAM...     N programs, each stopped and continued while it starts; prints how
 *                                       many ended, and how many ran while they were stopped
 * launch_unusual traps N PROGRAM...     N programs, each sent SIGTRAP while it starts; prints how many were ended by
 *                                       that or succeeded
 * launch_unusual clean                  succeeds on the image, without descriptors of others
 * launch_unusual holds-back PROGRAM...  each signal blocked and pending
 * launch_unusual ignores PROGRAM...     each signal ignored
 * launch_unusual signals                which signals are pending, blocked and ignored
 * launch_unusual apart                  how many seconds MONOTONIC is from the kernel's
 * launch_unusual user ID PROGRAM...     another user
 * launch_unusual filter ACTION CALL PROGRAM...
 *                                       a seccomp filter that answers a call, by its number, with errno, errno-0,
 *                                       errno-512, trap, trace, kill-thread or kill-process; CALL:N only where N is its third
 *                                       argument
 * launch_unusual notifies ANSWER CALL PROGRAM...
 *                                       a seccomp filter that has another process asked about a call, which
 *                                       answers: continue, errno, or (interrupts) lets it go on
 *                                       once it has been continued by a signal, or (disturbs) after 200
 *                                       signals that are nothing to it, or (terminates) has SIGTERM end it
 * launch_unusual descriptors PROGRAM... no descriptor left, below the hard limit
 * launch_unusual hard PROGRAM...        no descriptor left, at the hard limit
 * launch_unusual space                  no address space left
 * launch_unusual unmap                  no vDSO left
 * launch_unusual thread PROGRAM...      exec from a thread that is not the leader
 * launch_unusual traceme                asks to be traced by its parent
 * launch_unusual vsyscall               tells the time by the vsyscall page
 * launch_unusual traces                 two children that ask to be traced by it
 * launch_unusual seizes [ID]            asks to trace a child, or another process
 * launch_unusual asks-tracer            a filter that leaves getppid to a tracer
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int on_image(void)
{
    /* The image's own symbol; the kernel's vDSO has none of that name. */
    const char *image = (const char *)getauxval(AT_SYSINFO_EHDR);
    return image && memmem(image, 4096, "__vdso_clock_gettime_ns", 23) != NULL;
}

static int show(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now))
        return 1;
    printf("%lld %s\n", (long long)now.tv_sec, on_image() ? "image" : "host");
    return 0;
}

/* FNV-1a of strings, each with its final zero. */
static void add(unsigned long long *sum, char **strings)
{
    for (; *strings; strings++) {
        const char *next = *strings;
        do
            *sum = (*sum ^ (unsigned char)*next) * 0x100000001b3;
        while (*next++);
    }
}

static int words(char **all)
{
    unsigned long long sum = 0xcbf29ce484222325;
    add(&sum, all);
    add(&sum, environ);
    printf("%llx ", sum);
    return show();
}

static int storm(int count)
{
    for (int at = 0; at < count; at++) {
        pid_t child = fork();
        if (child < 0)
            return 1;
        if (child == 0)
            _exit(0);
        if (at % 50 == 49 || at == count - 1)
            while (wait(NULL) > 0)
                ;
    }
    return 0;
}

/* By how many nanoseconds the page's clock is ahead of the kernel's, in the narrowest of some pairs. */
static long long ahead(clockid_t clock)
{
    long long narrowest = 1LL << 62, found = 0;
    for (int pair = 0; pair < 16; pair++) {
        struct timespec before, page, after;
        syscall(SYS_clock_gettime, clock, &before);
        clock_gettime(clock, &page);
        syscall(SYS_clock_gettime, clock, &after);
        long long width = (after.tv_sec - before.tv_sec) * 1000000000LL + after.tv_nsec - before.tv_nsec;
        if (width >= narrowest)
            continue;
        narrowest = width;
        found = (page.tv_sec - before.tv_sec) * 1000000000LL + page.tv_nsec - before.tv_nsec - width / 2;
    }
    return found;
}

/* Whether it is as far ahead as that, within a millisecond; not at once, as a keeper may be off its CPU. */
static int is_ahead(clockid_t clock, long long wanted)
{
    for (int tries = 0; tries < 20; tries++) {
        long long off = ahead(clock) - wanted;
        if (off > -1000000 && off < 1000000)
            return 1;
        usleep(5000);
    }
    return 0;
}

static int forks(int count)
{
    const long long moved = ahead(CLOCK_REALTIME);
    int right = 0;
    for (int at = 0; at < count; at++) {
        pid_t child = fork();
        if (child < 0)
            return 1;
        if (child == 0) {
            const int is_right = is_ahead(CLOCK_MONOTONIC, 0) && is_ahead(CLOCK_REALTIME, moved);
            _exit(is_right && on_image() ? 0 : 1);
        }
        if (at % 50 == 49 || at == count - 1) {
            int status;
            while (wait(&status) > 0)
                right += status == 0;
        }
    }
    printf("%d\n", right);
    return show();
}

/* The one file of ours that is mapped, by device and inode. */
static const char *file_of_page(void)
{
    static char found[64];
    char line[512], file[64];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        if (!strstr(line, "/memfd:uvdso"))
            continue;
        char device[16], inode[32];
        if (sscanf(line, "%*s %*s %*s %15s %31s", device, inode) != 2)
            return "unknown";
        snprintf(file, sizeof file, "%s:%s", device, inode);
        if (*found && strcmp(found, file))
            return "several";
        strcpy(found, file);
    }
    if (maps)
        fclose(maps);
    return *found ? found : "none";
}

static int place(void)
{
    long long moved = ahead(CLOCK_REALTIME);
    /* The clock is moved; it is the kernel's only while the keeper is off its CPU in an update. */
    for (int tries = 0; tries < 20 && moved > -1000000 && moved < 1000000; tries++) {
        usleep(5000);
        moved = ahead(CLOCK_REALTIME);
    }
    printf("%lld %s ", moved, file_of_page());
    return show();
}

static int untraced(char **program)
{
    int status;
    pid_t child = syscall(SYS_clone, CLONE_UNTRACED | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        execvp(program[0], program);
        _exit(94);
    }
    return waitpid(child, &status, 0) != child || status;
}

static int apart(void)
{
    struct timespec page, kernel;
    clock_gettime(CLOCK_MONOTONIC, &page);
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &kernel);
    printf("%lld %s\n", (long long)(kernel.tv_sec - page.tv_sec), on_image() ? "image" : "host");
    return 0;
}

/* Some microseconds below the limit, by Marsaglia's xorshift32: the same in each run. */
static unsigned some_micros(unsigned limit)
{
    static unsigned state = 1;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % limit;
}

static void wait_micros(unsigned micros)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < micros * 1000L);
}

/* Whether a child ends within five seconds. */
static int ends(pid_t child)
{
    for (int tries = 0; tries < 5000; tries++) {
        if (waitpid(child, NULL, WNOHANG) == child)
            return 1;
        usleep(1000);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 0;
}

static int stops(int count, char **program)
{
    int ended = 0, ran = 0, status;
    for (int at = 0; at < count; at++) {
        pid_t child = fork();
        if (child == 0) {
            int null = open("/dev/null", O_WRONLY);
            dup2(null, 1);
            execvp(program[0], program);
            _exit(94);
        }
        wait_micros(150 + some_micros(1200));
        kill(child, SIGSTOP);
        /* Every other one is seen to stop, and to stay so. */
        if (at % 2 == 0) {
            wait_micros(some_micros(100));
        } else if (waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status)) {
            usleep(2000);
            if (waitpid(child, &status, WNOHANG) == child) {
                ran++;
                continue;
            }
        } else {
            ended++;
            continue;
        }
        kill(child, SIGCONT);
        ended += ends(child);
    }
    printf("%d %d\n", ended, ran);
    return 0;
}

static int clean(void)
{
    for (int fd = 3; fd < 64; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            return 1;
    return !on_image();
}

static int traps(int count, char **program)
{
    int right = 0, status;
    for (int at = 0; at < count; at++) {
        pid_t child = fork();
        if (child == 0) {
            for (int fd = 3; fd < 64; fd++)
                close(fd);
            execvp(program[0], program);
            _exit(94);
        }
        wait_micros(150 + some_micros(1200));
        kill(child, SIGTRAP);
        waitpid(child, &status, 0);
        right += status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGTRAP);
    }
    printf("%d\n", right);
    return 0;
}

/* All but those that the C library keeps for itself, or that cannot be had. */
static int is_free(int signal)
{
    return signal != SIGKILL && signal != SIGSTOP && (signal < 32 || signal > 33);
}

static void hold_back_all(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    for (int signal = 1; signal <= 64; signal++)
        if (is_free(signal))
            raise(signal);
}

static void ignore_all(void)
{
    for (int number = 1; number <= 64; number++)
        if (is_free(number))
            signal(number, SIG_IGN);
}

static int show_signals(void)
{
    char line[512], set[8];
    unsigned long long signals, kept = 0;
    for (int signal = 1; signal <= 64; signal++)
        kept |= is_free(signal) ? 1ULL << (signal - 1) : 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "%7[^:]: %llx", set, &signals) == 2
            && (!strcmp(set, "SigPnd") || !strcmp(set, "SigBlk") || !strcmp(set, "SigIgn")))
            printf("%s %llx\n", set, signals & kept);
    return !status;
}

/* Of the third argument as well, if `third` is not NULL; returns what the flags ask for. */
static int set_filter(unsigned call, const unsigned *third, unsigned action, unsigned flags)
{
    const unsigned argument = offsetof(struct seccomp_data, args[2]), number = offsetof(struct seccomp_data, nr);
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, third ? argument : number),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, third ? *third : call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog all = {sizeof program / sizeof *program, program};
    int set = -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        set = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &all);
    if (set < 0)
        _exit(90);
    return set;
}

static void filter(const char *action, const char *call)
{
    static const struct {
        const char *name;
        unsigned action;
    } actions[] = {
        {"errno", SECCOMP_RET_ERRNO | EPERM},
        {"errno-0", SECCOMP_RET_ERRNO},
        /* The kernel's own word for a call that was interrupted. */
        {"errno-512", SECCOMP_RET_ERRNO | 512},
        {"kill-process", SECCOMP_RET_KILL_PROCESS},
        {"kill-thread", SECCOMP_RET_KILL_THREAD},
        {"trap", SECCOMP_RET_TRAP},
        {"trace", SECCOMP_RET_TRACE},
    };
    char *end;
    const unsigned number = strtoul(call, &end, 10), third = *end ? strtoul(end + 1, NULL, 10) : 0;
    for (size_t at = 0; at < sizeof actions / sizeof *actions; at++)
        if (!strcmp(actions[at].name, action)) {
            set_filter(number, *end ? &third : NULL, actions[at].action, 0);
            return;
        }
    _exit(95);
}

/* The child has the filter, the parent answers for it. */
static int notifies(const char *answer, unsigned call, char **program)
{
    int pair[2], status, listener;
    if (pipe(pair))
        return 96;
    /* With descriptors in common until the child's exec. */
    pid_t child = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        listener = set_filter(call, NULL, SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);
        if (write(pair[1], &listener, sizeof listener) == sizeof listener)
            execvp(program[0], program);
        _exit(94);
    }
    if (read(pair[0], &listener, sizeof listener) != sizeof listener)
        return 97;
    int disturbances = strcmp(answer, "interrupts") ? 200 : 1;
    struct pollfd asked = {.fd = listener, .events = POLLIN};
    while (poll(&asked, 1, -1) == 1 && asked.revents & POLLIN) {
        struct seccomp_notif question = {0};
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &question))
            continue;
        if (!strcmp(answer, "terminates")) {
            kill(child, SIGTERM);
            return !ends(child);
        }
        const int is_disturbed = !strcmp(answer, "interrupts") || !strcmp(answer, "disturbs");
        if (is_disturbed && disturbances-- > 0) {
            /* The question is void then, and asked again. */
            kill(child, strcmp(answer, "interrupts") ? SIGWINCH : SIGCONT);
            continue;
        }
        struct seccomp_notif_resp response = {.id = question.id};
        if (strcmp(answer, "errno"))
            response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        else
            response.error = -EPERM;
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
    }
    waitpid(child, &status, 0);
    return status != 0;
}

static int asks_tracer(void)
{
    set_filter(SYS_getppid, NULL, SECCOMP_RET_TRACE, 0);
    long parent = syscall(SYS_getppid);
    printf("%s %s\n", parent < 0 ? strerror(errno) : "it ran", on_image() ? "image" : "host");
    return 0;
}

static void no_descriptors(int hard)
{
    struct rlimit limit = {3, hard ? 3 : 64};
    if (setrlimit(RLIMIT_NOFILE, &limit))
        _exit(91);
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
}

static int space(void)
{
    for (size_t size = 1UL << 46; size >= 4096; size /= 2)
        while (mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED)
            ;
    return show();
}

static int unmap(void)
{
    char *image = (char *)getauxval(AT_SYSINFO_EHDR);
    if (!on_image() || munmap(image - 4 * 4096, 6 * 4096))
        return 1;
    /* The C library's own pointers are gone with it, as they are on the kernel's vDSO. */
    struct timespec now;
    return syscall(SYS_clock_gettime, CLOCK_REALTIME, &now) != 0;
}

static int trace_said(long answer)
{
    printf("%s %s\n", answer ? strerror(errno) : "traced", on_image() ? "image" : "host");
    fflush(stdout);
    return 0;
}

static int traces(void)
{
    int status;
    for (int at = 0; at < 2; at++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            long answer = ptrace(PTRACE_TRACEME, 0, 0, 0);
            if (at == 0)
                trace_said(answer);
            _exit(0);
        }
        waitpid(child, &status, 0);
    }
    return 0;
}

static int seizes(const char *whom)
{
    pid_t child = whom ? atoi(whom) : fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    trace_said(ptrace(PTRACE_SEIZE, child, 0, 0));
    if (!whom)
        kill(child, SIGKILL);
    return 0;
}

/* The page at a fixed address that came before the vDSO: gettimeofday, time and getcpu. */
static int vsyscall(void)
{
    long (*volatile by_page)(time_t *) = (long (*)(time_t *))0xffffffffff600400;
    printf("%ld %s\n", by_page(NULL), on_image() ? "image" : "host");
    return 0;
}

static void *exec_thread(void *words)
{
    char **program = words;
    execvp(program[0], program);
    _exit(92);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    char **rest = argv + 2;
    if (!strcmp(what, "show"))
        return show();
    if (!strcmp(what, "words"))
        return words(rest);
    if (!strcmp(what, "storm"))
        return storm(atoi(argv[2]));
    if (!strcmp(what, "forks"))
        return forks(atoi(argv[2]));
    if (!strcmp(what, "place"))
        return place();
    if (!strcmp(what, "untraced"))
        return untraced(rest);
    if (!strcmp(what, "apart"))
        return apart();
    if (!strcmp(what, "stops"))
        return stops(atoi(argv[2]), argv + 3);
    if (!strcmp(what, "traps"))
        return traps(atoi(argv[2]), argv + 3);
    if (!strcmp(what, "clean"))
        return clean();
    if (!strcmp(what, "signals"))
        return show_signals();
    if (!strcmp(what, "space"))
        return space();
    if (!strcmp(what, "unmap"))
        return unmap();
    if (!strcmp(what, "traceme"))
        return trace_said(ptrace(PTRACE_TRACEME, 0, 0, 0));
    if (!strcmp(what, "vsyscall"))
        return vsyscall();
    if (!strcmp(what, "notifies"))
        return notifies(argv[2], atoi(argv[3]), argv + 4);
    if (!strcmp(what, "asks-tracer"))
        return asks_tracer();
    if (!strcmp(what, "traces"))
        return traces();
    if (!strcmp(what, "seizes"))
        return seizes(argv[2]);
    if (!strcmp(what, "fixed")) {
        personality(ADDR_NO_RANDOMIZE);
    } else if (!strcmp(what, "user")) {
        uid_t user = (uid_t)atoi(*rest++);
        if (setgroups(0, NULL) || setgid(user) || setuid(user))
            return 93;
    } else if (!strcmp(what, "filter")) {
        filter(rest[0], rest[1]);
        rest += 2;
    } else if (!strcmp(what, "holds-back")) {
        hold_back_all();
    } else if (!strcmp(what, "ignores")) {
        ignore_all();
    } else if (!strcmp(what, "descriptors") || !strcmp(what, "hard")) {
        no_descriptors(!strcmp(what, "hard"));
    } else if (!strcmp(what, "thread")) {
        pthread_t thread;
        pthread_create(&thread, NULL, exec_thread, rest);
        pthread_join(thread, NULL);
    } else {
        return 2;
    }
    execvp(rest[0], rest);
    return 94;
}
