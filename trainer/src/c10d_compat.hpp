#pragma once
// Everything in which LibTorch 1.13 and 2.x differ for us. (1.13 also lacks one header: libtorch-1.13/.)

#include <torch/version.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <string>

namespace ranklog::compat {

// The store's protocol changed between 1.13 and 2.0; torchrun's agents of today speak the newer one.
inline constexpr bool kSpeaksToAgents = TORCH_VERSION_MAJOR >= 2;

// Debian builds LibTorch 2 without libuv, which its store asks for by default.
inline void choose_store_server(c10d::TCPStoreOptions& options) {
#if TORCH_VERSION_MAJOR >= 2
  options.useLibUV = false;
#else
  (void)options;
#endif
}

// In 1.13 Gloo is a process group; in 2.x it is a backend of one.
inline c10::intrusive_ptr<c10d::ProcessGroup> make_gloo_group(
    const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
    const c10::intrusive_ptr<c10d::ProcessGroupGloo::Options>& options) {
  auto gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, size, options);
#if TORCH_VERSION_MAJOR >= 2
  auto group = c10::make_intrusive<c10d::ProcessGroup>(store, rank, size);
  group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO, gloo);
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
  return group;
#else
  return gloo;
#endif
}

// The key under which an optimizer keeps what it remembers about a parameter.
inline auto optimizer_state_key(const at::Tensor& parameter) {
#if TORCH_VERSION_MAJOR >= 2
  return static_cast<void*>(parameter.unsafeGetTensorImpl());
#else
  return c10::guts::to_string(parameter.unsafeGetTensorImpl());
#endif
}

}  // namespace ranklog::compat
