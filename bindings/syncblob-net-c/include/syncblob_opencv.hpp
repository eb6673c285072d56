/**
 * Reads Caffe's models in OpenCV 5, which no longer has an importer for them. The functions have
 * the same names as in OpenCV 4. Each function converts a net to ONNX in memory, and OpenCV reads
 * the result. Programs link libsyncblob-net (pkg-config syncblob-net, or the component net of
 * CMake's package syncblob) and the dnn module of OpenCV 4 or 5.
 *
 *     cv::dnn::Net net = syncblob::readNetFromCaffe("deploy.prototxt", "face.caffemodel");
 *
 * If the prototxt is empty, the net stored in the model is read. Options (net.h) set the shapes of
 * inputs if the net does not contain these shapes. If a net cannot be read or converted, the calls
 * throw cv::Exception, whose message lists all layers that cannot be converted.
 */
#ifndef SYNCBLOB_OPENCV_HPP
#define SYNCBLOB_OPENCV_HPP

#include <opencv2/dnn.hpp>
#include <syncblob/net.h>

#include <memory>
#include <string>
#include <vector>

namespace syncblob {
namespace detail {

inline void check(sb_status status, const sb_error &err, const std::string &problems = "") {
    if (status != SB_OK)
        CV_Error(cv::Error::StsError, problems.empty() ? std::string(err.message) : problems);
}

inline void add_problem(void *user, const sb_net_problem *problem) noexcept {
    *static_cast<std::string *>(user) += "\nlayer '" + std::string(problem->layer.bytes) + "' (" +
                                         problem->type.bytes + "): " + problem->reason.bytes;
}

inline cv::dnn::Net read(sb_net *opened) {
    const std::unique_ptr<sb_net, void (*)(sb_net *)> net(opened, sb_net_destroy);
    std::string problems;
    sb_onnx_options options = SB_ONNX_OPTIONS_INIT;
    options.report = add_problem;
    options.user = &problems;
    std::size_t size = 0;
    sb_error err;
    const sb_status status = sb_net_save_onnx(net.get(), &options, nullptr, 0, &size, &err);
    if (status != SB_ERR_BUFFER_TOO_SMALL)
        check(status, err, problems);
    std::vector<unsigned char> file(size);
    check(sb_net_save_onnx(net.get(), &options, file.data(), size, &size, &err), err);
    return cv::dnn::readNetFromONNX(file);
}

} // namespace detail

/** Reads a net from two files. */
inline cv::dnn::Net readNetFromCaffe(const std::string &prototxt, const std::string &model = "",
                                     const sb_net_options *options = nullptr) {
    const auto path = [](const std::string &name) { return name.empty() ? nullptr : name.c_str(); };
    sb_net *net = nullptr;
    sb_error err;
    detail::check(sb_net_open_file(path(prototxt), path(model), options, &net, &err), err);
    return detail::read(net);
}

/** Reads a net from the contents of two files. */
inline cv::dnn::Net readNetFromCaffe(const std::vector<unsigned char> &prototxt,
                                     const std::vector<unsigned char> &model = {},
                                     const sb_net_options *options = nullptr) {
    sb_model *opened = nullptr;
    sb_net *net = nullptr;
    sb_error err;
    if (!model.empty())
        detail::check(sb_model_open_bytes(nullptr, SB_FORMAT_CAFFEMODEL, model.data(), model.size(),
                                          nullptr, nullptr, nullptr, &opened, &err),
                      err);
    const std::unique_ptr<sb_model, void (*)(sb_model *)> owner(opened, sb_model_destroy);
    const void *text = prototxt.empty() ? nullptr : prototxt.data();
    detail::check(sb_net_open(text, prototxt.size(), opened, options, &net, &err), err);
    return detail::read(net);
}

} // namespace syncblob

#endif
