#include "training_state.hpp"

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/csrc/jit/serialization/pickler.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

#include "c10d_compat.hpp"

namespace ranklog {
namespace {

using Dict = c10::impl::GenericDict;
using List = c10::impl::GenericList;

constexpr std::int64_t kStateFormat = 1;

Dict text_dict() {
  return Dict(c10::StringType::get(), c10::AnyType::get());
}

at::Tensor bytes_tensor(const std::string& bytes) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
  std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

// Parameters and buffers, as Python's state_dict() has them.
std::vector<std::pair<std::string, at::Tensor>> state_of(const torch::nn::Module& model) {
  std::vector<std::pair<std::string, at::Tensor>> state;
  for (const auto& item : model.named_parameters()) state.emplace_back(item.key(), item.value());
  for (const auto& item : model.named_buffers()) state.emplace_back(item.key(), item.value());
  return state;
}

Dict model_dict(const torch::nn::Module& model) {
  Dict dict = text_dict();
  for (const auto& [name, tensor] : state_of(model)) dict.insert(name, tensor.detach());
  return dict;
}

Dict group_dict(const torch::optim::SGDOptions& options, std::int64_t parameters) {
  List indices(c10::AnyType::get());
  for (std::int64_t i = 0; i < parameters; ++i) indices.push_back(i);
  Dict group = text_dict();
  group.insert("lr", options.lr());
  group.insert("momentum", options.momentum());
  group.insert("dampening", options.dampening());
  group.insert("weight_decay", options.weight_decay());
  group.insert("nesterov", options.nesterov());
  group.insert("params", indices);
  return group;
}

Dict optimizer_dict(torch::optim::SGD& optimizer) {
  const std::vector<at::Tensor>& parameters = optimizer.param_groups().front().params();
  Dict state(c10::IntType::get(), c10::AnyType::get());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto found = optimizer.state().find(compat::optimizer_state_key(parameters[i]));
    if (found == optimizer.state().end()) continue;
    Dict entry = text_dict();
    entry.insert("momentum_buffer",
                 static_cast<const torch::optim::SGDParamState&>(*found->second).momentum_buffer());
    state.insert(static_cast<std::int64_t>(i), entry);
  }
  List groups(c10::AnyType::get());
  groups.push_back(
      group_dict(static_cast<const torch::optim::SGDOptions&>(optimizer.param_groups().front().options()),
                 static_cast<std::int64_t>(parameters.size())));
  Dict dict = text_dict();
  dict.insert("state", state);
  dict.insert("param_groups", groups);
  return dict;
}

Dict whole_dict(const torch::nn::Module& model, torch::optim::SGD& optimizer,
                const TrainingProgress& progress) {
  List rng(c10::AnyType::get());
  for (const std::string& state : progress.rng) rng.push_back(bytes_tensor(state));
  Dict dict = text_dict();
  dict.insert("format_version", kStateFormat);
  dict.insert("model", model_dict(model));
  dict.insert("optimizer", optimizer_dict(optimizer));
  dict.insert("step", progress.step);
  dict.insert("epoch", progress.epoch);
  dict.insert("world_size", progress.world_size);
  dict.insert("batch_size", progress.batch_size);
  dict.insert("seed", static_cast<std::int64_t>(progress.seed));
  dict.insert("best_accuracy", progress.best_accuracy);
  dict.insert("rng", rng);
  return dict;
}

// What cannot be used, said without the file's name.
[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::kDamaged, what);
}

c10::IValue entry_of(const Dict& dict, const std::string& name) {
  const auto found = dict.find(name);
  if (found == dict.end()) refuse("it has no entry '" + name + "'");
  return found->value();
}

std::string shape_text(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.sizes();
  return text.str();
}

void copy_checked(const std::string& name, const c10::IValue& from, at::Tensor to) {
  if (!from.isTensor()) refuse("'" + name + "' is no tensor");
  const at::Tensor& tensor = from.toTensor();
  if (tensor.sizes() != to.sizes() || tensor.scalar_type() != to.scalar_type()) {
    refuse("it is of another model: '" + name + "' has shape " + shape_text(tensor) + ", this model's has " +
           shape_text(to));
  }
  to.copy_(tensor);
}

void load_model(const Dict& dict, torch::nn::Module& model) {
  const auto state = state_of(model);
  if (dict.size() != state.size()) {
    refuse("it is of another model: it has " + std::to_string(dict.size()) + " tensors, this model has " +
           std::to_string(state.size()));
  }
  for (const auto& [name, tensor] : state) copy_checked(name, entry_of(dict, name), tensor);
}

void load_optimizer(const Dict& dict, torch::optim::SGD& optimizer) {
  const std::vector<at::Tensor>& parameters = optimizer.param_groups().front().params();
  for (const auto& item : entry_of(dict, "state").toGenericDict()) {
    const std::int64_t index = item.key().toInt();
    if (index < 0 || index >= static_cast<std::int64_t>(parameters.size())) {
      refuse("its optimizer has a parameter " + std::to_string(index));
    }
    const at::Tensor& parameter = parameters[static_cast<std::size_t>(index)];
    at::Tensor buffer = at::zeros_like(parameter, at::TensorOptions().requires_grad(false));
    copy_checked("momentum_buffer of parameter " + std::to_string(index),
                 entry_of(item.value().toGenericDict(), "momentum_buffer"), buffer);
    auto state = std::make_unique<torch::optim::SGDParamState>();
    state->momentum_buffer(buffer);
    optimizer.state()[compat::optimizer_state_key(parameter)] = std::move(state);
  }
}

TrainingProgress load_progress(const Dict& dict) {
  TrainingProgress progress;
  progress.step = entry_of(dict, "step").toInt();
  progress.epoch = entry_of(dict, "epoch").toInt();
  progress.world_size = entry_of(dict, "world_size").toInt();
  progress.batch_size = entry_of(dict, "batch_size").toInt();
  progress.seed = static_cast<std::uint64_t>(entry_of(dict, "seed").toInt());
  progress.best_accuracy = entry_of(dict, "best_accuracy").toDouble();
  const c10::IValue rng = entry_of(dict, "rng");
  for (const c10::IValue& state : rng.toListRef()) {
    const at::Tensor bytes = state.toTensor().contiguous();
    progress.rng.emplace_back(static_cast<const char*>(bytes.data_ptr()), bytes.nbytes());
  }
  return progress;
}

}  // namespace

// Not torch::pickle_save: it tags dictionaries with a TorchScript helper that torch.load(weights_only=True),
// Python's default since 2.6, refuses. And this way the tensors go to the sink without another copy.
void write_training_state(const torch::nn::Module& model, torch::optim::SGD& optimizer,
                          const TrainingProgress& progress, const CheckpointWriter::Sink& sink) {
  std::string pickled;
  torch::jit::Pickler pickler([&](const char* data, std::size_t bytes) { pickled.append(data, bytes); },
                              nullptr, nullptr, nullptr, nullptr, /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(whole_dict(model, optimizer, progress));
  pickler.stop();

  caffe2::serialize::PyTorchStreamWriter zip([&](const void* data, std::size_t bytes) {
    sink(data, bytes);
    return bytes;
  });
  zip.writeRecord("data.pkl", pickled.data(), pickled.size());
  std::size_t index = 0;
  for (const at::Tensor& tensor : pickler.tensorData()) {
    const torch::jit::WriteableTensorData data = torch::jit::getWriteableTensorData(tensor);
    zip.writeRecord("data/" + std::to_string(index++), data.data(), data.sizeInBytes());
  }
  zip.writeEndOfFile();
}

TrainingProgress read_training_state(const std::filesystem::path& file, torch::nn::Module& model,
                                     torch::optim::SGD& optimizer) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw Error(ErrorCode::kIo, "cannot read the checkpoint '" + file.string() + "'");
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  const torch::NoGradGuard no_grad;
  try {
    const Dict dict = torch::jit::pickle_load(bytes).toGenericDict();
    if (entry_of(dict, "format_version").toInt() != kStateFormat) refuse("it is of another version");
    load_model(entry_of(dict, "model").toGenericDict(), model);
    load_optimizer(entry_of(dict, "optimizer").toGenericDict(), optimizer);
    return load_progress(dict);
  } catch (const Error& e) {
    throw Error(e.code(), "cannot use the checkpoint '" + file.string() + "': " + e.what());
  } catch (const std::exception&) {  // LibTorch's own words, with a stack trace, help nobody
    throw Error(ErrorCode::kDamaged, "cannot use the checkpoint '" + file.string() +
                                         "': it is not a dictionary as torch.save writes it");
  }
}

}  // namespace ranklog
