// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The guest's init: mounts what programs expect, runs the judges and the kernel's own tests, and
 * powers off. Each runs in a child, so that one that dies is seen and the rest still run.
 *
 * /tests, a line each: a program of the kernel's tests with its arguments. Kernel parameters after
 * "--" say what runs: "race=30", "without=suspend", "only=bracket,race".
 */
#include "guest.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

void die(const char *what)
{
	printf("died: ");
	fflush(stdout);
	perror(what);
	/* Not exit(): it would move the list of tests back for the parent, who shares the file. */
	_exit(70);
}

void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		die(path);
	close(fd);
}

void within(struct tally *tally, int64_t low, int64_t value, int64_t high)
{
	tally->checks++;
	if (value < low || value > high) {
		int64_t off = value < low ? low - value : value - high;

		tally->bad++;
		if (off > tally->worst)
			tally->worst = off;
	}
}

void holds(struct tally *tally, bool truth)
{
	tally->checks++;
	tally->bad += !truth;
}

void report(const char *judge, const char *what, const struct tally *tally)
{
	printf("@%s %s checks=%llu bad=%llu worst=%lld\n", judge, what,
	       (unsigned long long)tally->checks, (unsigned long long)tally->bad,
	       (long long)tally->worst);
	fflush(stdout);
}

static int race_seconds = 30;

static void bracket_at_rest(void)
{
	judge_served("rest", true);
	judge_bracket("rest");
}

static void race(void)
{
	judge_race(race_seconds);
}

static const struct {
	const char *name;
	void (*run)(void);
} judges[] = {
	{ "identity", judge_identity },
	{ "bracket", bracket_at_rest },
	{ "getcpu", judge_getcpu },
	{ "signals", judge_signals },
	{ "timezone", judge_timezone },
	{ "settime", judge_settime },
	{ "tai", judge_tai },
	{ "leap", judge_leap },
	{ "timens", judge_timens },
	{ "clocksource", judge_clocksource },
	{ "suspend", judge_suspend },
	{ "race", race },
};

/* Runs a child to its end and says how it ended; one that hangs is killed after `seconds`. */
static void supervise(const char *kind, const char *name, int pid, int seconds)
{
	int status = 0, waited = 0;

	for (int i = 0; i < seconds * 20; i++) {
		waited = waitpid(pid, &status, WNOHANG);
		if (waited == pid)
			break;
		usleep(50000);
	}
	if (waited != pid) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	printf("@%s name=%s exit=%d signal=%d\n", kind, name,
	       WIFEXITED(status) ? WEXITSTATUS(status) : -1,
	       WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	fflush(stdout);
}

static void run_judge(int i)
{
	int pid = fork();

	if (!pid) {
		judges[i].run();
		exit(0);
	}
	supervise("judge", judges[i].name, pid, 60 + race_seconds);
}

static void run_test(char *line)
{
	char *arguments[16], *rest = line;
	int n = 0, pid;

	while (n < 15 && (arguments[n] = strsep(&rest, " \n")))
		n += *arguments[n] != 0;
	arguments[n] = NULL;
	if (!n)
		return;
	printf("@begin name=%s\n", arguments[0]);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		char path[128];

		if (chdir("/kselftest"))
			die("/kselftest");
		snprintf(path, sizeof(path), "./%s", arguments[0]);
		dup2(1, 2);
		execv(path, arguments);
		die(path);
	}
	supervise("selftest", arguments[0], pid, 90);
}

static void show(const char *name, const char *path)
{
	char text[4096];
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return;
	text[n - (text[n - 1] == '\n')] = 0;
	printf("@%s %s\n", name, text);
	close(fd);
}

/* The names are whole words of a list: no name is the end of another. */
static bool listed(const char *list, const char *name)
{
	const char *at = list ? strstr(list, name) : NULL;
	size_t length = strlen(name);

	return at && (at[length] == ',' || !at[length]);
}

int main(int argc, char **argv)
{
	const char *only = NULL, *without = NULL;
	char line[256];
	FILE *tests;

	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mkdir("/tmp", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("tmpfs", "/tmp", "tmpfs", 0, NULL);
	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "race=", 5))
			race_seconds = atoi(argv[i] + 5);
		else if (!strncmp(argv[i], "only=", 5))
			only = argv[i] + 5;
		else if (!strncmp(argv[i], "without=", 8))
			without = argv[i] + 8;
	}
	/* The final clocksource is chosen about a second after boot. */
	usleep(2500000);
	show("kernel", "/proc/version");
	show("clocksource-at-begin",
	     "/sys/devices/system/clocksource/clocksource0/current_clocksource");
	vdso_find();
	for (size_t i = 0; i < sizeof(judges) / sizeof(judges[0]); i++)
		if ((!only || listed(only, judges[i].name)) && !listed(without, judges[i].name))
			run_judge(i);
	tests = !only || listed(only, "selftests") ? fopen("/tests", "r") : NULL;
	while (tests && fgets(line, sizeof(line), tests))
		run_test(line);
	show("clocksource-at-end",
	     "/sys/devices/system/clocksource/clocksource0/current_clocksource");
	printf("@end\n");
	fflush(stdout);
	sync();
	/* Without a way to power off, a reboot ends the machine: QEMU runs with -no-reboot. */
#ifdef __x86_64__
	reboot(RB_AUTOBOOT);
#else
	reboot(RB_POWER_OFF);
#endif
	return 0;
}
