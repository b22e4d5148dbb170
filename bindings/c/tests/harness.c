#include "harness.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support.h"

/* Longer than anything but a hang takes on a busy machine, also under valgrind. */
enum { PATIENCE_S = 240 };

enum { FAILED = 99 };

enum state { WAITING, RUNNING, PASSED, NOT_PASSED, SKIPPED };

struct test {
    char *name;
    test_function run;
    const void *argument;
    int leaves;
    const char *skip;
    enum state state;
    pid_t process;
    FILE *output;
    double started, seconds;
    char *text;
};

static struct test *tests;
static size_t count;

void test_add(const char *name, test_function run, const void *argument, int leaves, const char *skip) {
    tests = realloc(tests, (count + 1) * sizeof *tests);
    tests[count++] = (struct test){
        .name = strdup(name), .run = run, .argument = argument, .leaves = leaves, .skip = skip};
}

_Noreturn void fail_at(const char *file, int line, const char *format, ...) {
    va_list values;
    va_start(values, format);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, format, values);
    fprintf(stderr, "\n");
    fflush(stderr);
    va_end(values);
    _exit(FAILED);
}

static int is_child_of_a_test;

static void note_fork(void) {
    is_child_of_a_test = 1;
}

/* Asked by LeakSanitizer. What threads of its parent had on their stacks would be leaked by a child. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) {
    return is_child_of_a_test;
}

static void start(struct test *test) {
    test->output = tmpfile();
    fflush(NULL);
    test->state = RUNNING;
    test->started = now_s();
    test->process = fork();
    if (test->process != 0)
        return;
    setpgid(0, 0);
    dup2(fileno(test->output), STDOUT_FILENO);
    dup2(fileno(test->output), STDERR_FILENO);
    pthread_atfork(NULL, NULL, note_fork);
    alarm(PATIENCE_S);
    test->run(test->argument);
    if (test->leaves == CLEAN)
        check_nothing_is_open();
    exit(0);
}

static void read_output(struct test *test) {
    fseek(test->output, 0, SEEK_END);
    long length = ftell(test->output);
    rewind(test->output);
    test->text = calloc(1, (size_t)length + 1);
    if (fread(test->text, 1, (size_t)length, test->output) != (size_t)length)
        strcpy(test->text, "");
    fclose(test->output);
}

static void ended(struct test *test, int status) {
    test->seconds = now_s() - test->started;
    kill(-test->process, SIGKILL);
    read_output(test);
    char why[128] = "";
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(why, sizeof why, "no end after %d s", PATIENCE_S);
    else if (WIFSIGNALED(status))
        snprintf(why, sizeof why, "ended by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        snprintf(why, sizeof why, "exit code %d", WEXITSTATUS(status));
    else if (test->text[0] != '\0')
        snprintf(why, sizeof why, "printed something");
    test->state = why[0] == '\0' ? PASSED : NOT_PASSED;
    printf("%s %s (%.2f s)\n", why[0] == '\0' ? "ok    " : "FAILED", test->name, test->seconds);
    if (why[0] != '\0')
        printf("---- %s: %s\n%s----\n", test->name, why, test->text);
    fflush(stdout);
}

static void run_all(size_t jobs) {
    size_t next = 0, running = 0;
    for (;;) {
        while (running < jobs && next < count) {
            struct test *test = &tests[next++];
            if (test->state == SKIPPED)
                continue;
            start(test);
            running++;
        }
        if (running == 0)
            return;
        int status;
        pid_t process = waitpid(-1, &status, 0);
        if (process < 0 && errno == EINTR)
            continue;
        for (size_t i = 0; i < count; i++)
            if (tests[i].state == RUNNING && tests[i].process == process) {
                ended(&tests[i], status);
                running--;
            }
    }
}

static void write_escaped(FILE *file, const char *text) {
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '<' || c == '>' || c == '&' || c == '"')
            fprintf(file, "&#%d;", c);
        else if (c >= 32 || c == '\n')
            fputc(c, file);
    }
}

static size_t in_state(enum state state) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += tests[i].state == state;
    return found;
}

static void write_junit(const char *path) {
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        perror(path);
        exit(2);
    }
    fprintf(file, "<?xml version=\"1.0\"?>\n<testsuite name=\"c\" tests=\"%zu\" failures=\"%zu\" "
                  "errors=\"0\" skipped=\"%zu\">\n",
            count, in_state(NOT_PASSED), in_state(SKIPPED));
    for (size_t i = 0; i < count; i++) {
        fprintf(file, "<testcase name=\"");
        write_escaped(file, tests[i].name);
        fprintf(file, "\" time=\"%.3f\">", tests[i].seconds);
        if (tests[i].state == NOT_PASSED) {
            fprintf(file, "<failure>");
            write_escaped(file, tests[i].text);
            fprintf(file, "</failure>");
        }
        if (tests[i].state == SKIPPED) {
            fprintf(file, "<skipped message=\"");
            write_escaped(file, tests[i].skip);
            fprintf(file, "\"/>");
        }
        fprintf(file, "</testcase>\n");
    }
    fprintf(file, "</testsuite>\n");
    fclose(file);
}

/* Keeps the tests that have one of the parts in their names, or, as `keep` says, the others. */
static void choose(char **parts, int number, bool keep) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        bool found = number == 0;
        for (int part = 0; part < number; part++)
            found = found || strstr(tests[i].name, parts[part]) != NULL;
        if (found == keep)
            tests[kept++] = tests[i];
        else
            free(tests[i].name);
    }
    count = kept;
}

int tests_main(int argc, char **argv) {
    size_t jobs = 4;
    const char *junit = NULL;
    bool list = false;
    int first = 1;
    for (; first < argc && strncmp(argv[first], "--", 2) == 0; first++) {
        if (strcmp(argv[first], "--jobs") == 0 && first + 1 < argc)
            jobs = strtoul(argv[++first], NULL, 10);
        else if (strcmp(argv[first], "--junit") == 0 && first + 1 < argc)
            junit = argv[++first];
        else if (strcmp(argv[first], "--without") == 0 && first + 1 < argc)
            choose(&argv[++first], 1, false);
        else if (strcmp(argv[first], "--list") == 0)
            list = true;
        else {
            fprintf(stderr, "%s: unknown option %s; see harness.h\n", argv[0], argv[first]);
            return 2;
        }
    }
    choose(argv + first, argc - first, true);
    for (size_t i = 0; i < count; i++) {
        if (list)
            printf("%s\n", tests[i].name);
        if (tests[i].skip != NULL)
            tests[i].state = SKIPPED;
    }
    if (list)
        return 0;
    run_all(jobs);
    if (junit != NULL)
        write_junit(junit);
    size_t passed = in_state(PASSED), failed = in_state(NOT_PASSED);
    printf("\nC: %zu passed, %zu failed, %zu skipped\n", passed, failed, in_state(SKIPPED));
    return failed == 0 && passed > 0 ? 0 : 1;
}
