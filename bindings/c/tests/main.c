/* All tests of the C binding. */
#include "support.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#else
#define __lsan_disable() ((void)0)
#define __lsan_enable() ((void)0)
#endif

int main(int argc, char **argv) {
    /* What describes the tests lives until the end; every one would be told that it has leaked it. */
    __lsan_disable();
    add_argument_tests();
    add_lease_tests();
    add_async_tests();
    add_hostility_tests();
    add_process_tests();
    add_package_tests();
    add_example_tests();
    add_conformance_tests();
    __lsan_enable();
    return tests_main(argc, argv);
}
