#include "http_server.hpp"

#include <dirent.h>
#include <httplib.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <limits>
#include <thread>

#include "disk.hpp"
#include "ranklog/schema/digest.hpp"
#include "ranklog/schema/error.hpp"
#include "router.hpp"
#include "text.hpp"

namespace ranklog::standin {
namespace {

// An idle connection occupies a thread until it times out, and W&B's clients keep many.
constexpr std::size_t kThreads = 96;
constexpr std::size_t kRequestsPerConnection = 1'000'000;
constexpr std::chrono::seconds kIdle{10};
constexpr std::chrono::seconds kStall{120};

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

Incoming incoming(const httplib::Request& request) {
  Incoming in;
  in.method = request.method;
  in.path = request.target.substr(0, request.target.find('?'));
  in.body = request.body;
  in.host = request.get_header_value("Host");
  for (const auto& [name, value] : request.headers) {
    // The library adds the peer's address as headers of its own.
    const std::string lower = lower_case(name);
    const bool added =
        lower == "remote_addr" || lower == "remote_port" || lower == "local_addr" || lower == "local_port";
    if (!added) in.headers[lower] = value;
  }
  return in;
}

// Whether the descriptor is a connection with this peer, whose address is in numbers, as the library has it.
bool has_peer(int descriptor, const std::string& host, int port) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  auto* peer = reinterpret_cast<sockaddr*>(&address);
  if (getpeername(descriptor, peer, &length) != 0) return false;
  std::array<char, NI_MAXHOST> numeric_host{};
  std::array<char, NI_MAXSERV> numeric_port{};
  const int failed = getnameinfo(peer, length, numeric_host.data(), numeric_host.size(), numeric_port.data(),
                                 numeric_port.size(), NI_NUMERICHOST | NI_NUMERICSERV);
  return failed == 0 && host == numeric_host.data() && std::to_string(port) == numeric_port.data();
}

// The library hands no handler its socket; among our own descriptors it is the one with this peer. It stays
// open until the handler has returned.
void cut_connection(const httplib::Request& request) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), closedir);
  if (!folder) return;
  while (const dirent* entry = readdir(folder.get())) {
    const int descriptor = std::atoi(entry->d_name);
    if (has_peer(descriptor, request.remote_addr, request.remote_port)) shutdown(descriptor, SHUT_RDWR);
  }
}

// Receives an upload into a file, with its digest.
Received receive(const httplib::ContentReader& reader, const std::filesystem::path& path) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  DigestStream digest;
  const bool whole = reader([&](const char* data, std::size_t size) {
    out.write(data, static_cast<std::streamsize>(size));
    digest.update(data, size);
    return out.good();
  });
  out.flush();
  if (!out) throw Error(ErrorCode::kIo, "cannot write " + path.string());
  if (!whole) throw ApiError(400, "the upload broke off");
  const FileDigests digests = digest.finish();
  return {path, {digests.size, digests.md5}};
}

void send_file(httplib::Response& response, const std::filesystem::path& file, const std::string& type) {
  auto in = std::make_shared<std::ifstream>(file, std::ios::binary);
  response.set_content_provider(std::filesystem::file_size(file), type.c_str(),
                                [in](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
                                  std::string buffer(std::min(length, std::size_t{1} << 18), '\0');
                                  in->seekg(static_cast<std::streamoff>(offset));
                                  in->read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
                                  return in->gcount() > 0 &&
                                         sink.write(buffer.data(), static_cast<std::size_t>(in->gcount()));
                                });
}

void send_half(httplib::Response& response, const std::string& body, const std::string& type) {
  response.set_content_provider(body.size(), type.c_str(),
                                [body](std::size_t, std::size_t, httplib::DataSink& sink) {
                                  sink.write(body.data(), body.size() / 2);
                                  return false;
                                });
}

void send(httplib::Response& response, const Answer& answer, const Fault& fault) {
  response.status = answer.status;
  for (const auto& [name, value] : answer.headers) response.set_header(name.c_str(), value);
  if (fault.half_body) {
    send_half(response, answer.body, answer.content_type);
  } else if (!answer.file.empty()) {
    send_file(response, answer.file, answer.content_type);
  } else {
    response.set_content(answer.body, answer.content_type.c_str());
  }
}

Answer scripted(const Fault& fault, Answer answer) {
  if (fault.status == 0) return answer;
  answer = {};
  answer.status = fault.status;
  answer.body = fault.body;
  answer.headers = fault.headers;
  return answer;
}

}  // namespace

struct HttpServer::Impl {
  Router router;
  httplib::Server http;
  std::string host;
  int port = 0;

  explicit Impl(ServerOptions options)
      : router(options.folder, std::move(options.settings), options.script, options.complaints),
        host(std::move(options.host)) {
    configure();
    bind(options.port);
  }

  void configure() {
    http.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    http.set_keep_alive_max_count(kRequestsPerConnection);
    http.set_keep_alive_timeout(kIdle.count());
    http.set_read_timeout(kStall);
    http.set_write_timeout(kStall);
    http.set_payload_max_length(std::numeric_limits<std::size_t>::max());
    http.set_tcp_nodelay(true);
    // The library's default is SO_REUSEPORT, with which two servers share a port unnoticed.
    http.set_socket_options([](int socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    const auto plain = [this](const httplib::Request& request, httplib::Response& response) {
      handle(request, response);
    };
    const auto upload = [this](const httplib::Request& request, httplib::Response& response,
                               const httplib::ContentReader& reader) {
      handle_upload(request, response, reader);
    };
    http.Get(".*", plain);
    http.Post(".*", plain);
    http.Put(".*", upload);
  }

  void bind(int wanted) {
    port = wanted == 0 ? http.bind_to_any_port(host) : (http.bind_to_port(host, wanted) ? wanted : -1);
    if (port > 0) return;
    const std::string where = host + (wanted == 0 ? "" : ":" + std::to_string(wanted));
    throw Error(ErrorCode::kBusy,
                "cannot listen on " + where + " (in use, or not an address of this machine)",
                "give another --port; 0 takes any that is free");
  }

  void handle(const httplib::Request& request, httplib::Response& response) {
    const Incoming in = incoming(request);
    const Fault fault = router.plan(in);
    std::this_thread::sleep_for(fault.delay);
    const Answer answer = scripted(fault, fault.process ? router.answer(in) : Answer{});
    finish(request, response, in, request.body.size(), answer, fault);
  }

  void handle_upload(const httplib::Request& request, httplib::Response& response,
                     const httplib::ContentReader& reader) {
    const Incoming in = incoming(request);
    const Fault fault = router.plan(in);
    std::this_thread::sleep_for(fault.delay);
    Received received;
    Answer answer;
    if (!fault.cut || fault.process) {
      try {
        received = receive(reader, router.incoming_file());
        if (fault.process) answer = router.answer_upload(in, received);
      } catch (const std::exception& problem) {
        answer.status = 500;
        answer.error = problem.what();
      }
    }
    finish(request, response, in, received.stored.size, scripted(fault, std::move(answer)), fault);
    std::error_code ignored;  // it has moved on if it was right
    std::filesystem::remove(received.file, ignored);
  }

  void finish(const httplib::Request& request, httplib::Response& response, const Incoming& in,
              std::uint64_t request_bytes, const Answer& answer, const Fault& fault) {
    if (!in.path.starts_with("/standin/")) router.log(in, request_bytes, answer, fault);
    if (fault.cut) cut_connection(request);
    send(response, answer, fault);
  }
};

HttpServer::HttpServer(ServerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
HttpServer::~HttpServer() = default;

int HttpServer::port() const noexcept {
  return impl_->port;
}

std::string HttpServer::url() const {
  return "http://" + impl_->host + ":" + std::to_string(impl_->port);
}

void HttpServer::run() {
  impl_->http.listen_after_bind();
}

void HttpServer::stop() {
  // The library ignores a stop that comes before its loop has begun.
  for (int i = 0; i < 500 && !impl_->http.is_running(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  impl_->http.stop();
}

}  // namespace ranklog::standin
