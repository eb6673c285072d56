// A fake of the parts of OpenCV 5 that syncblob_opencv.hpp needs. Few systems package OpenCV 5.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace cv {

struct Exception : std::runtime_error {
    explicit Exception(const std::string &what) : std::runtime_error(what) {
    }
};

namespace Error {
enum Code { StsError = -2 };
}

namespace dnn {
struct Net {
    std::vector<unsigned char> file;
};
enum EngineType { ENGINE_AUTO = 3 };

inline Net readNetFromONNX(const std::vector<unsigned char> &buffer, int = ENGINE_AUTO) {
    return {buffer};
}
} // namespace dnn
} // namespace cv

#define CV_Error(code, message) throw cv::Exception(((void)(code), (message)))
