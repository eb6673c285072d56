/* None of the functions that are looked up in a driver, a cuBLAS or an NCCL. */
int standin_without(void);

int standin_without(void) {
    return 0;
}
