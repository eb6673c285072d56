#include "gpu.h"

int main(void) {
    const int missing = gpu_begin();
    return missing ? missing : run_all_tests();
}
