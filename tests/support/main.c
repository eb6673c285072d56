#include "support.h"

int main(void) {
    return run_all_tests();
}
