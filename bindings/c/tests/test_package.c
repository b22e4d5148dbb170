/* The installed package, as a user finds it: `package` does the work. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "support.h"

static const char *const CHECKS[] = {
    "header_c11_gcc",     "header_c11_clang",     "header_cpp17_gcc", "header_cpp17_clang",
    "pkg_config_shared",  "pkg_config_static",    "cmake_shared",     "cmake_static",
    "moved_elsewhere",    "only_our_symbols",     "no_test_hooks",    "soname_has_the_version",
    "every_function_of_the_header_is_exported", "everything_in_the_header_has_a_comment",
};

static void check(const void *name) {
    char command[512];
    snprintf(command, sizeof command, "%s/package %s", FENCELOCK_TESTS, (const char *)name);
    int status = system(command);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void add_package_tests(void) {
    for (size_t i = 0; i < sizeof CHECKS / sizeof *CHECKS; i++) {
        char name[96];
        snprintf(name, sizeof name, "package.%s", CHECKS[i]);
        test_add(name, check, CHECKS[i], CLEAN, NULL);
    }
}
