/* Converts a net to an ONNX file: convert PROTOTXT MODEL OUT. */
#include <stdio.h>
#include <syncblob/net.h>

int main(int count, char **words) {
    sb_net *net = NULL;
    sb_net_summary summary = SB_NET_SUMMARY_INIT;
    sb_error err;
    if (count != 4)
        return 2;
    if (sb_net_open_file(words[1], words[2], NULL, &net, &err) != SB_OK ||
        sb_net_info(net, &summary, &err) != SB_OK ||
        sb_net_save_onnx_file(net, NULL, words[3], &err) != SB_OK) {
        fprintf(stderr, "%s: %s\n", sb_status_name(err.code), err.message);
        sb_net_destroy(net);
        return 1;
    }
    for (int64_t i = 0; i < summary.num_inputs; i++)
        printf("input %s\n", summary.inputs[i].bytes);
    for (int64_t i = 0; i < summary.num_outputs; i++)
        printf("output %s\n", summary.outputs[i].bytes);
    sb_net_destroy(net);
    return 0;
}
