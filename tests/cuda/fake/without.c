/* A library without the functions of a driver, a cuBLAS or an NCCL. */
int fake_without(void);

int fake_without(void) {
    return 0;
}
