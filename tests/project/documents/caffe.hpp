/* What the pages' C++ calls of Caffe, declared, so that a compiler can read it. The names and
   types are those of Caffe's interface; nothing here is defined. */
#include <memory>
#include <ostream>
#include <string>
#include <vector>

std::ostream &log_of(int severity);
enum { INFO };
#define LOG(severity)  log_of(severity)
#define CHECK_EQ(a, b) ((a) == (b) ? LOG(INFO) : LOG(INFO) << "they differ")

namespace caffe {
using std::shared_ptr;
using std::vector;

class BlobProto {};

class LayerParameter {
  public:
    const std::string &name() const;
    const BlobProto &blobs(int index) const;
    BlobProto *mutable_blobs(int index);
    BlobProto *add_blobs();
    void set_name(const char *name);
    void set_type(const char *type);
};

class NetParameter {
  public:
    int layer_size() const;
    const LayerParameter &layer(int index) const;
    LayerParameter *mutable_layer(int index);
    LayerParameter *add_layer();
    void set_name(const char *name);
};

class SolverState {
  public:
    int iter() const;
    const std::string &learned_net() const;
    int history_size() const;
    const BlobProto &history(int index) const;
};

class FillerParameter {
  public:
    void set_type(const char *type);
};

class SyncedMemory {
  public:
    enum SyncedHead { UNINITIALIZED, HEAD_AT_CPU, HEAD_AT_GPU, SYNCED };
    SyncedHead head() const;
};

template <typename Dtype> class Blob {
  public:
    Blob();
    explicit Blob(const vector<int> &shape);
    Blob(int num, int channels, int height, int width);
    std::string shape_string() const;
    int count() const;
    int channels() const;
    const Dtype *cpu_data() const;
    const Dtype *gpu_data() const;
    Dtype *mutable_cpu_data();
    Dtype *mutable_cpu_diff();
    void set_cpu_data(Dtype *data);
    const shared_ptr<SyncedMemory> &data() const;
    void ShareData(const Blob &other);
    void Update();
    Dtype asum_data() const;
    Dtype sumsq_data() const;
    void scale_data(Dtype factor);
    void scale_diff(Dtype factor);
    void FromProto(const BlobProto &proto, bool reshape = true);
    void ToProto(BlobProto *proto, bool write_diff = false) const;
};

template <typename Dtype> class Filler {
  public:
    virtual ~Filler();
    virtual void Fill(Blob<Dtype> *blob) = 0;
};
template <typename Dtype> Filler<Dtype> *GetFiller(const FillerParameter &parameter);

class Caffe {
  public:
    enum Brew { CPU, GPU };
    static void set_mode(Brew mode);
    static void SetDevice(int device);
};

template <typename Dtype> void caffe_set(int n, Dtype alpha, Dtype *x);
void ReadNetParamsFromBinaryFileOrDie(const std::string &file, NetParameter *net);
template <typename Message> void ReadProtoFromBinaryFileOrDie(const char *file, Message *message);
template <typename Message> void WriteProtoToBinaryFile(const Message &message, const char *file);
} // namespace caffe
