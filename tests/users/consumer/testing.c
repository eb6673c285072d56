/* Tests with libsyncblob-testing that a call reports that the device is out of memory. */
#include <syncblob/sim.h>
#include <syncblob/syncblob.h>

int main(void) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    sb_context *context = NULL;
    sb_mem *mem = NULL;
    const void *ptr = NULL;
    options.device = "sim:0";
    if (sb_context_create(&options, &context, NULL) || sb_mem_create(context, 16, &mem, NULL) ||
        sb_sim_fail(context, SB_SIM_ALLOC, 1, SB_SIM_FAIL_NOW, NULL))
        return 1;
    int failed =
        sb_mem_gpu(mem, &ptr, NULL) != SB_ERR_OUT_OF_MEMORY || sb_mem_gpu(mem, &ptr, NULL) != SB_OK;
    sb_mem_release(mem);
    sb_context_release(context);
    return failed;
}
