// Uses syncblob_opencv.hpp with the fake OpenCV: opencv PROTOTXT MODEL OUT.
#include <syncblob_opencv.hpp>

#include <cstdio>
#include <fstream>
#include <iterator>

static std::vector<unsigned char> read(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    return std::vector<unsigned char>(std::istreambuf_iterator<char>(file), {});
}

static bool refuses(const std::string &prototxt, const std::string &words) {
    try {
        syncblob::readNetFromCaffe(std::vector<unsigned char>(prototxt.begin(), prototxt.end()));
    } catch (const cv::Exception &error) {
        const bool expected = std::string(error.what()).find(words) != std::string::npos;
        if (!expected)
            std::fprintf(stderr, "not '%s' but '%s'\n", words.c_str(), error.what());
        return expected;
    }
    return false;
}

int main(int count, char **words) {
    if (count != 4)
        return 2;
    const cv::dnn::Net of_files = syncblob::readNetFromCaffe(words[1], words[2]);
    const cv::dnn::Net of_buffers = syncblob::readNetFromCaffe(read(words[1]), read(words[2]));
    if (of_files.file != of_buffers.file)
        return 1;
    sb_net_options options = SB_NET_OPTIONS_INIT;
    options.batch = 7;
    if (syncblob::readNetFromCaffe(words[1], words[2], &options).file == of_files.file)
        return 1;
    std::ofstream(words[3], std::ios::binary)
        .write(reinterpret_cast<const char *>(of_files.file.data()),
               static_cast<std::streamsize>(of_files.file.size()));
    const std::string layers = "input: 'a' input_shape { dim: 1 }"
                               "layer { name: 'b' type: 'Python' bottom: 'a' top: 'b' }"
                               "layer { name: 'c' type: 'Newest' bottom: 'a' top: 'c' }";
    return refuses(layers, "layer 'c' (Newest)") && refuses("layer {", "line 1") ? 0 : 1;
}
