/* None of the functions that are looked up in a driver, a cuBLAS or an NCCL. */
int fake_without(void);

int fake_without(void) {
    return 0;
}
