/**
 * caffe::Blob, implemented by sb_blob. The class also stores the shape as a vector of int,
 * because Caffe returns the shape in this form and reads it often.
 */
#ifndef SYNCBLOB_CAFFE_HPP
#define SYNCBLOB_CAFFE_HPP

#include <algorithm>
#include <climits>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "caffe/proto/caffe.pb.h"
#include "syncblob_caffe_memory.hpp"

const int kMaxBlobAxes = SB_MAX_AXES;

namespace caffe {

namespace syncblob {

/** The element type of a Blob<Dtype>. */
template <typename Dtype> struct DtypeOf;
template <> struct DtypeOf<float> { static const sb_dtype value = SB_DTYPE_F32; };
template <> struct DtypeOf<double> { static const sb_dtype value = SB_DTYPE_F64; };
template <> struct DtypeOf<int> { static const sb_dtype value = SB_DTYPE_I32; };
template <> struct DtypeOf<unsigned int> { static const sb_dtype value = SB_DTYPE_U32; };
template <> struct DtypeOf<bool> { static const sb_dtype value = SB_DTYPE_U8; };
static_assert(sizeof(bool) == 1, "a bool has one byte");

/** Returns offset * dim + index, which must fit into an int. */
inline int Step(int offset, int dim, int index) {
    int step;
    const bool fits =
        !__builtin_mul_overflow(offset, dim, &step) && !__builtin_add_overflow(step, index, &step);
    Require(fits, SB_ERR_SIZE_OVERFLOW, "the offset exceeds INT_MAX");
    return step;
}

/** Returns the product of the dimensions, which must fit into an int. */
inline int Product(const int *begin, const int *end) {
    int64_t product = 1;
    for (const int *dim = begin; dim != end; ++dim) {
        Require(*dim >= 0, SB_ERR_INVALID_ARGUMENT, "a dimension is negative");
        product *= *dim;
        Require(product <= INT_MAX, SB_ERR_SIZE_OVERFLOW, "blob size exceeds INT_MAX");
    }
    return static_cast<int>(product);
}

inline vector<int> Dimensions(const BlobShape &shape) {
    vector<int> dims;
    for (const int64_t dim : shape.dim()) {
        Require(dim >= 0 && dim <= INT_MAX, SB_ERR_BAD_SHAPE, "a dimension is not an int");
        dims.push_back(static_cast<int>(dim));
    }
    return dims;
}

/** Returns whether the message stores its shape as num, channels, height and width. */
inline bool IsLegacy(const BlobProto &proto) {
    return proto.has_num() || proto.has_channels() || proto.has_height() || proto.has_width();
}

inline vector<int> Dimensions(const BlobProto &proto) {
    if (IsLegacy(proto))
        return {proto.num(), proto.channels(), proto.height(), proto.width()};
    return Dimensions(proto.shape());
}

/** Returns the field of a message that stores data of the element type `float` or `double`. */
inline google::protobuf::RepeatedField<float> *DataOf(BlobProto *proto, const float *) {
    return proto->mutable_data();
}
inline google::protobuf::RepeatedField<double> *DataOf(BlobProto *proto, const double *) {
    return proto->mutable_double_data();
}
inline google::protobuf::RepeatedField<float> *DiffOf(BlobProto *proto, const float *) {
    return proto->mutable_diff();
}
inline google::protobuf::RepeatedField<double> *DiffOf(BlobProto *proto, const double *) {
    return proto->mutable_double_diff();
}

/** Copies values into a field. If the blob borrows the field's memory, `values` points to that
 *  memory, and Reserve does not move it: the field has room for all values. */
template <typename Dtype>
inline void Replace(google::protobuf::RepeatedField<Dtype> *field, const Dtype *values, int count) {
    field->Clear();
    field->Reserve(count);
    for (int i = 0; i < count; ++i)
        field->AddAlreadyReserved(values[i]);
}

} // namespace syncblob

template <typename Dtype> class Blob {
  public:
    Blob() : blob_(nullptr, sb_blob_destroy), count_(0), capacity_(0) {
    }
    explicit Blob(int num, int channels, int height, int width) : Blob() {
        Reshape(num, channels, height, width);
    }
    explicit Blob(const vector<int> &shape) : Blob() {
        Reshape(shape);
    }

    void Reshape(int num, int channels, int height, int width) {
        const int shape[] = {num, channels, height, width};
        ReshapeTo(shape, shape + 4);
    }
    void Reshape(const vector<int> &shape) {
        ReshapeTo(shape.data(), shape.data() + shape.size());
    }
    void Reshape(const BlobShape &shape) {
        Reshape(syncblob::Dimensions(shape));
    }
    void ReshapeLike(const Blob &other) {
        Reshape(other.shape());
    }

    string shape_string() const {
        string text;
        for (const int dim : shape_)
            text += std::to_string(dim) + " ";
        return text + "(" + std::to_string(count_) + ")";
    }
    const vector<int> &shape() const {
        return shape_;
    }
    int shape(int index) const {
        return shape_[CanonicalAxisIndex(index)];
    }
    int num_axes() const {
        return static_cast<int>(shape_.size());
    }
    int count() const {
        return count_;
    }
    int count(int start_axis, int end_axis) const {
        syncblob::Require(0 <= start_axis && start_axis <= end_axis && end_axis <= num_axes(),
                          SB_ERR_INDEX_OUT_OF_RANGE, "start_axis or end_axis is out of range");
        return syncblob::Product(shape_.data() + start_axis, shape_.data() + end_axis);
    }
    int count(int start_axis) const {
        return count(start_axis, num_axes());
    }
    int CanonicalAxisIndex(int axis_index) const {
        if (axis_index < -num_axes() || axis_index >= num_axes())
            FailAxis(axis_index);
        return axis_index < 0 ? axis_index + num_axes() : axis_index;
    }

    int num() const {
        return LegacyShape(0);
    }
    int channels() const {
        return LegacyShape(1);
    }
    int height() const {
        return LegacyShape(2);
    }
    int width() const {
        return LegacyShape(3);
    }
    int LegacyShape(int index) const {
        syncblob::Require(num_axes() <= 4, SB_ERR_SHAPE_MISMATCH, "more than 4 axes");
        syncblob::Require(-4 <= index && index < 4, SB_ERR_INDEX_OUT_OF_RANGE, "no legacy axis");
        if (index >= num_axes() || index < -num_axes())
            return 1;
        return shape_[index < 0 ? index + num_axes() : index];
    }

    /** Returns an offset. As in Caffe, an index may be equal to its dimension: layers compute
     *  strides as offset(0, 1), even if there is one channel. */
    int offset(int n, int c = 0, int h = 0, int w = 0) const {
        syncblob::Require(0 <= n && n <= num() && 0 <= c && c <= channels() && 0 <= h &&
                              h <= height() && 0 <= w && w <= width(),
                          SB_ERR_INDEX_OUT_OF_RANGE, "an index is outside its axis");
        int offset = syncblob::Step(n, channels(), c);
        offset = syncblob::Step(offset, height(), h);
        return syncblob::Step(offset, width(), w);
    }
    int offset(const vector<int> &indices) const {
        syncblob::Require(indices.size() <= shape_.size(), SB_ERR_INDEX_OUT_OF_RANGE,
                          "more indices than axes");
        int offset = 0;
        for (size_t i = 0; i < shape_.size(); ++i) {
            const int index = i < indices.size() ? indices[i] : 0;
            syncblob::Require(i >= indices.size() || (0 <= index && index < shape_[i]),
                              SB_ERR_INDEX_OUT_OF_RANGE, "an index is outside its axis");
            offset = syncblob::Step(offset, shape_[i], index);
        }
        return offset;
    }

    Dtype data_at(int n, int c, int h, int w) const {
        return Element(cpu_data(), offset(n, c, h, w));
    }
    Dtype diff_at(int n, int c, int h, int w) const {
        return Element(cpu_diff(), offset(n, c, h, w));
    }
    Dtype data_at(const vector<int> &index) const {
        return Element(cpu_data(), offset(index));
    }
    Dtype diff_at(const vector<int> &index) const {
        return Element(cpu_diff(), offset(index));
    }

    const shared_ptr<SyncedMemory> &data() const {
        if (data_ == nullptr)
            data_ = Memory(SB_DATA);
        return data_;
    }
    const shared_ptr<SyncedMemory> &diff() const {
        if (diff_ == nullptr)
            diff_ = Memory(SB_DIFF);
        return diff_;
    }

    const Dtype *cpu_data() const {
        return static_cast<const Dtype *>(data()->cpu_data());
    }
    const Dtype *gpu_data() const {
        return static_cast<const Dtype *>(data()->gpu_data());
    }
    const Dtype *cpu_diff() const {
        return static_cast<const Dtype *>(diff()->cpu_data());
    }
    const Dtype *gpu_diff() const {
        return static_cast<const Dtype *>(diff()->gpu_data());
    }
    Dtype *mutable_cpu_data() {
        return static_cast<Dtype *>(data()->mutable_cpu_data());
    }
    Dtype *mutable_gpu_data() {
        return static_cast<Dtype *>(data()->mutable_gpu_data());
    }
    Dtype *mutable_cpu_diff() {
        return static_cast<Dtype *>(diff()->mutable_cpu_data());
    }
    Dtype *mutable_gpu_diff() {
        return static_cast<Dtype *>(diff()->mutable_gpu_data());
    }
    /** Uses the caller's memory as the data of this blob and of all blobs that share its data. */
    void set_cpu_data(Dtype *data) {
        this->data()->set_cpu_data(data);
    }
    void set_gpu_data(Dtype *data) {
        this->data()->set_gpu_data(data);
    }
    const int *gpu_shape() const;

    void CopyFrom(const Blob &source, bool copy_diff = false, bool reshape = false);
    void ShareData(const Blob &other) {
        const shared_ptr<SyncedMemory> &shared = other.data();
        if (!blob_)
            Create();
        syncblob::Check(sb_blob_share, blob_.get(), SB_DATA, other.blob_.get());
        data_ = shared;
    }
    void ShareDiff(const Blob &other) {
        const shared_ptr<SyncedMemory> &shared = other.diff();
        if (!blob_)
            Create();
        syncblob::Check(sb_blob_share, blob_.get(), SB_DIFF, other.blob_.get());
        diff_ = shared;
    }

    void Update() {
        syncblob::Check(sb_blob_update, blob_.get());
    }
    /** Sums are computed in double and then rounded. A blob without a shape has the sum 0. */
    Dtype asum_data() const {
        return Sum(sb_blob_asum, SB_DATA);
    }
    Dtype asum_diff() const {
        return Sum(sb_blob_asum, SB_DIFF);
    }
    Dtype sumsq_data() const {
        return Sum(sb_blob_sumsq, SB_DATA);
    }
    Dtype sumsq_diff() const {
        return Sum(sb_blob_sumsq, SB_DIFF);
    }
    void scale_data(Dtype scale_factor) {
        if (blob_)
            syncblob::Check(sb_blob_scale, blob_.get(), SB_DATA, static_cast<double>(scale_factor));
    }
    void scale_diff(Dtype scale_factor) {
        if (blob_)
            syncblob::Check(sb_blob_scale, blob_.get(), SB_DIFF, static_cast<double>(scale_factor));
    }

    bool ShapeEquals(const BlobProto &other) const;
    void FromProto(const BlobProto &proto, bool reshape = true);
    void ToProto(BlobProto *proto, bool write_diff = false) const;

  protected:
    std::unique_ptr<sb_blob, void (*)(sb_blob *)> blob_; // may be NULL without a shape
    mutable shared_ptr<SyncedMemory> data_; // blob_'s data; NULL without a shape or after a failure
    mutable shared_ptr<SyncedMemory> diff_;
    mutable shared_ptr<SyncedMemory> shape_data_; // for gpu_shape; NULL if out of date
    vector<int> shape_;
    int count_;
    int capacity_;

  private:
    void ReshapeTo(const int *begin, const int *end);
    void Renew(const int64_t *shape, int num_axes, int count);
    void Create();

    [[noreturn]] __attribute__((noinline, cold)) void FailAxis(int axis) const {
        const string message = "axis " + std::to_string(axis) + " of the shape " + shape_string();
        syncblob::Fail(SB_ERR_INDEX_OUT_OF_RANGE, message.c_str());
    }

    __attribute__((noinline, cold)) shared_ptr<SyncedMemory> Memory(sb_part part) const {
        syncblob::Require(num_axes() > 0 || count_ > 0, SB_ERR_UNINITIALIZED,
                          "the blob has no shape yet");
        return Memory(part, blob_.get());
    }
    static shared_ptr<SyncedMemory> Memory(sb_part part, sb_blob *blob) {
        SyncedMemory::Shared shared;
        syncblob::Check(sb_blob_mutable_mem, blob, part, &shared.mem);
        return shared_ptr<SyncedMemory>(new SyncedMemory(shared));
    }

    Dtype Element(const Dtype *elements, int index) const {
        syncblob::Require(0 <= index && index < count_, SB_ERR_INDEX_OUT_OF_RANGE,
                          "no such element");
        return elements[index];
    }

    Dtype Sum(sb_status (*sum)(const sb_blob *, sb_part, double *, sb_error *),
              sb_part part) const {
        double total = 0;
        if (blob_)
            syncblob::Check(sum, static_cast<const sb_blob *>(blob_.get()), part, &total);
        return static_cast<Dtype>(total);
    }

    /** Copies `doubles` or, if `doubles` is empty, `values`. Both may be empty. */
    template <typename Field, typename Doubles>
    static void Take(const Field &values, const Doubles &doubles, Dtype *to) {
        if (doubles.size() > 0)
            std::copy(doubles.begin(), doubles.end(), to);
        else
            std::copy(values.begin(), values.end(), to);
    }

    DISABLE_COPY_AND_ASSIGN(Blob);
};

/** If the count exceeds the capacity, replaces data and diff, as Caffe does. Otherwise keeps both
 *  memories with their contents, unless a shared memory is too small. */
template <typename Dtype> void Blob<Dtype>::ReshapeTo(const int *begin, const int *end) {
    if (data_ && diff_ && shape_.size() == static_cast<size_t>(end - begin) &&
        std::equal(begin, end, shape_.data()))
        return;
    syncblob::Require(end - begin <= kMaxBlobAxes, SB_ERR_OVER_LIMIT, "too many axes");
    const int count = syncblob::Product(begin, end);
    const int num_axes = static_cast<int>(end - begin);
    vector<int> shape(begin, end);
    int64_t dims[kMaxBlobAxes];
    std::copy(begin, end, dims);
    if (!blob_ || count > capacity_) {
        Renew(dims, num_axes, count);
    } else {
        uint32_t replaced;
        syncblob::Check(sb_blob_reshape, blob_.get(), static_cast<const int64_t *>(dims), num_axes,
                        &replaced);
        if (replaced & SB_REALLOCATED_DATA)
            data_.reset();
        if (replaced & SB_REALLOCATED_DIFF)
            diff_.reset();
    }
    shape_.swap(shape);
    count_ = count;
    shape_data_.reset();
    data();
    diff();
}

/** Creates blob_ without a shape, so that it can share the memory of a blob without elements. */
template <typename Dtype> void Blob<Dtype>::Create() {
    sb_blob *made;
    syncblob::Check(sb_blob_create, SYNCBLOB_CAFFE_CONTEXT,
                    sb_dtype(syncblob::DtypeOf<Dtype>::value), &made);
    blob_.reset(made);
}

/** As in Caffe, replaces data and diff with unallocated memories. `count` is the new capacity. */
template <typename Dtype> void Blob<Dtype>::Renew(const int64_t *shape, int num_axes, int count) {
    sb_blob *made;
    syncblob::Check(sb_blob_create_shaped, SYNCBLOB_CAFFE_CONTEXT,
                    sb_dtype(syncblob::DtypeOf<Dtype>::value), shape, num_axes, &made);
    std::unique_ptr<sb_blob, void (*)(sb_blob *)> blob(made, sb_blob_destroy);
    shared_ptr<SyncedMemory> data = Memory(SB_DATA, made);
    shared_ptr<SyncedMemory> diff = Memory(SB_DIFF, made);
    blob_.swap(blob);
    data_.swap(data);
    diff_.swap(diff);
    capacity_ = count;
}

template <typename Dtype> const int *Blob<Dtype>::gpu_shape() const {
    data(); // fails without a shape
    if (!shape_data_) {
        const size_t bytes = shape_.size() * sizeof(int);
        shared_ptr<SyncedMemory> memory(new SyncedMemory(bytes, sb_blob_context(blob_.get())));
        std::copy(shape_.begin(), shape_.end(), static_cast<int *>(memory->mutable_cpu_data()));
        shape_data_.swap(memory);
    }
    return static_cast<const int *>(shape_data_->gpu_data());
}

/** As in Caffe, memory of the source that was never written is first filled with zeros. */
template <typename Dtype>
void Blob<Dtype>::CopyFrom(const Blob &source, bool copy_diff, bool reshape) {
    if (source.count_ != count_ || source.shape_ != shape_) {
        syncblob::Require(reshape, SB_ERR_SHAPE_MISMATCH, "copy between blobs of different shapes");
        source.data(); // fails without a shape
        ReshapeLike(source);
    }
    const shared_ptr<SyncedMemory> &from = copy_diff ? source.diff() : source.data();
    const shared_ptr<SyncedMemory> &to = copy_diff ? diff() : data();
    if (Caffe::mode() == Caffe::GPU) {
        from->gpu_data(); // makes sb_blob_copy_from copy on the device
        syncblob::Check(sb_blob_copy_from, blob_.get(), sb_part(copy_diff ? SB_DIFF : SB_DATA),
                        static_cast<const sb_blob *>(source.blob_.get()), 0U);
        return;
    }
    const void *bytes = from->cpu_data();
    void *target = to->mutable_cpu_data();
    if (target != bytes)
        std::memcpy(target, bytes, sizeof(Dtype) * count_);
}

template <typename Dtype> bool Blob<Dtype>::ShapeEquals(const BlobProto &other) const {
    if (syncblob::IsLegacy(other))
        return num_axes() <= 4 && LegacyShape(-4) == other.num() &&
               LegacyShape(-3) == other.channels() && LegacyShape(-2) == other.height() &&
               LegacyShape(-1) == other.width();
    return num_axes() == other.shape().dim_size() &&
           std::equal(shape_.begin(), shape_.end(), other.shape().dim().begin());
}

template <typename Dtype> void Blob<Dtype>::FromProto(const BlobProto &proto, bool reshape) {
    syncblob::Require(reshape || ShapeEquals(proto), SB_ERR_SHAPE_MISMATCH,
                      "shape mismatch (reshape not set)");
    const vector<int> shape = reshape ? syncblob::Dimensions(proto) : shape_;
    const int count = syncblob::Product(shape.data(), shape.data() + shape.size());
    const int values = proto.double_data_size() > 0 ? proto.double_data_size() : proto.data_size();
    const int diffs = proto.double_diff_size() > 0 ? proto.double_diff_size() : proto.diff_size();
    syncblob::Require(values == count && (diffs == count || diffs == 0), SB_ERR_LENGTH_MISMATCH,
                      "the message has more or fewer values than its shape");
    Reshape(shape);
    Take(proto.data(), proto.double_data(), mutable_cpu_data());
    if (diffs > 0)
        Take(proto.diff(), proto.double_diff(), mutable_cpu_diff());
}

/** Only for float and double, as in Caffe: other element types do not compile. */
template <typename Dtype> void Blob<Dtype>::ToProto(BlobProto *proto, bool write_diff) const {
    const Dtype *data = cpu_data();
    const Dtype *diff = write_diff ? cpu_diff() : nullptr;
    proto->clear_shape();
    for (const int dim : shape_)
        proto->mutable_shape()->add_dim(dim);
    syncblob::Replace(syncblob::DataOf(proto, data), data, count_);
    syncblob::DiffOf(proto, data)->Clear();
    if (write_diff)
        syncblob::Replace(syncblob::DiffOf(proto, data), diff, count_);
}

} // namespace caffe

#endif
