// An example of syncblob in C++11: handles with destructors, and statuses as exceptions. Copy this
// file and add the calls that you need. A Blob can be moved but not copied. Copies of a Context
// share one context.
#ifndef RAII_HPP
#define RAII_HPP

#include <syncblob/syncblob.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace raii {

class Error : public std::runtime_error {
  public:
    explicit Error(const sb_error &error)
        : std::runtime_error(std::string(sb_status_name(error.code)) + ": " + error.message),
          code(error.code), offset(error.offset) {
    }

    const sb_status code;
    const std::int64_t offset; // the position in the bytes or file that was read, or -1
};

// Calls function(arguments..., &error). Throws if the call fails.
template <class... Parameters, class... Arguments>
void call(sb_status (*function)(Parameters...), Arguments &&...arguments) {
    sb_error error;
    const sb_status status = function(std::forward<Arguments>(arguments)..., &error);
    if (status == SB_ERR_OUT_OF_MEMORY)
        throw std::bad_alloc();
    if (status != SB_OK)
        throw Error(error);
}

class Context {
  public:
    Context() = default; // the built-in context, host only

    explicit Context(const char *device) {
        sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
        sb_context *made = nullptr;
        options.device = device;
        call(sb_context_create, &options, &made);
        handle.reset(made, sb_context_release);
    }

    sb_context *get() const {
        return handle.get();
    }

  private:
    std::shared_ptr<sb_context> handle;
};

template <class T> constexpr std::int32_t dtype();
template <> constexpr std::int32_t dtype<float>() {
    return SB_DTYPE_F32;
}
template <> constexpr std::int32_t dtype<double>() {
    return SB_DTYPE_F64;
}

template <class T> class Blob {
  public:
    explicit Blob(const std::vector<std::int64_t> &shape, const Context &context = Context()) {
        sb_blob *made = nullptr;
        call(sb_blob_create_shaped, context.get(), dtype<T>(), shape.data(),
             static_cast<std::int32_t>(shape.size()), &made);
        handle.reset(made);
    }

    // Reads a file that is one BlobProto, such as mean.binaryproto.
    static Blob read(const std::string &path, const Context &context = Context()) {
        Blob blob({0}, context);
        call(sb_blob_load_file, blob.get(), path.c_str(), std::uint32_t{SB_PROTO_RESHAPE}, nullptr);
        return blob;
    }

    void write(const std::string &path, std::uint32_t flags = 0) const {
        call(sb_blob_save_file, get(), path.c_str(), flags);
    }

    std::vector<std::int64_t> shape() const {
        const std::int64_t *first = sb_blob_shape(get());
        return std::vector<std::int64_t>(first, first + sb_blob_num_axes(get()));
    }

    std::size_t size() const {
        return static_cast<std::size_t>(sb_blob_count(get()));
    }

    const T *data(sb_part part = SB_DATA) const {
        const void *out = nullptr;
        call(sb_blob_cpu, get(), part, &out);
        return static_cast<const T *>(out);
    }

    T *mutable_data(sb_part part = SB_DATA) {
        void *out = nullptr;
        call(sb_blob_mutable_cpu, get(), part, &out);
        return static_cast<T *>(out);
    }

    void update() { // data -= diff
        call(sb_blob_update, get());
    }

    double asum() const {
        double sum = 0;
        call(sb_blob_asum, get(), SB_DATA, &sum);
        return sum;
    }

    sb_blob *get() const {
        return handle.get();
    }

  private:
    struct Destroy {
        void operator()(sb_blob *blob) const {
            sb_blob_destroy(blob);
        }
    };
    std::unique_ptr<sb_blob, Destroy> handle;
};

} // namespace raii

#endif
