/* The numbers of elements of ResNet-50's 161 diffs, in the order of the layers. */
#ifndef SB_BENCH_RESNET_50_H
#define SB_BENCH_RESNET_50_H

#include <stdint.h>

enum { BLOBS = 161 };

static int64_t counts[BLOBS], total;
static int num_counts;

static void add(int64_t count) {
    counts[num_counts++] = count;
    total += count;
}

static void add_convolution(int64_t in, int64_t out, int64_t kernel) {
    add(out * in * kernel * kernel);
    add(out);
    add(out);
}

static void add_resnet_50(void) {
    static const int blocks[] = {3, 4, 6, 3};
    int64_t in = 64;
    add_convolution(3, in, 7);
    for (int stage = 0; stage < 4; stage++) {
        const int64_t width = (int64_t)64 << stage;
        for (int i = 0; i < blocks[stage]; i++) {
            add_convolution(in, width, 1);
            add_convolution(width, width, 3);
            add_convolution(width, 4 * width, 1);
            if (i == 0)
                add_convolution(in, 4 * width, 1);
            in = 4 * width;
        }
    }
    add(1000 * in);
    add(1000);
}

#endif
