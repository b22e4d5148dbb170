#include "support.h"

int main(int argc, char **argv) {
    add_argument_tests();
    add_lease_tests();
    add_async_tests();
    add_hostility_tests();
    add_process_tests();
    add_package_tests();
    add_conformance_tests();
    return tests_main(argc, argv);
}
