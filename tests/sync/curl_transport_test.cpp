#include "ranklog/sync/curl_transport.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "ranklog/schema/digest.hpp"
#include "raw_server.hpp"
#include "support/temp_dir.hpp"

namespace ranklog::sync {
namespace {

using ranklog::test::TempDir;
using ranklog::test::write_file;
using test::RawRequest;
using test::RawServer;

class CurlTransportTest : public ::testing::Test {
 protected:
  static HttpRequest post(const RawServer& server, std::string body) {
    HttpRequest request;
    request.url = server.url() + "/path";
    request.body = std::move(body);
    return request;
  }
  HttpRequest put(const RawServer& server, const std::string& content) {
    write_file(dir_ / "file", content);
    HttpRequest request;
    request.method = "PUT";
    request.url = server.url() + "/put";
    request.file = FileBody{dir_ / "file", content.size(), md5_hex(content)};
    return request;
  }

  TempDir dir_;
  StopFlag stop_;
  CurlTransport transport_{{true, "", "test/1"}, stop_};
};

TEST_F(CurlTransportTest, CarriesBodyHeadersAndStatusBothWays) {
  RawServer server([](std::size_t, const RawRequest&) {
    return RawServer::reply(418, "short and stout", "Retry-After: 7 \r\n");
  });
  HttpRequest request = post(server, "hello");
  request.headers.emplace_back("X-Thing", "value");
  request.headers.emplace_back("X-Empty", "");
  const HttpResponse response = transport_.perform(request);
  EXPECT_EQ(response.delivery, Delivery::kAnswered);
  EXPECT_EQ(response.status, 418);
  EXPECT_EQ(response.body, "short and stout");
  EXPECT_EQ(response.header("retry-after"), "7");
  const RawRequest seen = server.requests().at(0);
  EXPECT_EQ(seen.body, "hello");
  for (const char* part : {"POST /path HTTP/1.1", "X-Thing: value", "X-Empty:", "User-Agent: test/1",
                           "Content-Type: application/json", "Content-Length: 5"}) {
    EXPECT_NE(seen.head.find(part), std::string::npos) << seen.head;
  }
  EXPECT_EQ(seen.head.find("Expect"), std::string::npos);
}

TEST_F(CurlTransportTest, LargeBodiesArriveWhole) {
  RawServer server(
      [](std::size_t, const RawRequest& request) { return RawServer::reply(200, md5_hex(request.body)); });
  std::string body(5'000'000, 'x');
  for (std::size_t i = 0; i < body.size(); i += 7) body[i] = static_cast<char>('a' + i % 23);
  EXPECT_EQ(transport_.perform(post(server, body)).body, md5_hex(body));
}

TEST_F(CurlTransportTest, RefusedConnectionWasNotSent) {
  std::string url;
  {
    const RawServer gone([](std::size_t, const RawRequest&) { return std::string(); });
    url = gone.url();
  }
  HttpRequest request;
  request.url = url;
  const HttpResponse response = transport_.perform(request);
  EXPECT_EQ(response.delivery, Delivery::kNotSent);
  EXPECT_FALSE(response.fault.empty());
}

TEST_F(CurlTransportTest, LostReplyIsUnclear) {
  RawServer server([](std::size_t, const RawRequest&) { return std::string(); });
  EXPECT_EQ(transport_.perform(post(server, "x")).delivery, Delivery::kUnclear);
}

TEST_F(CurlTransportTest, HalfAReplyIsUnclear) {
  RawServer server([](std::size_t, const RawRequest&) {
    return std::string("HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\nhalf");
  });
  HttpRequest request = post(server, "x");
  request.timeout = std::chrono::milliseconds(500);
  EXPECT_EQ(transport_.perform(request).delivery, Delivery::kUnclear);
}

TEST_F(CurlTransportTest, SilenceEndsAtTheTimeout) {
  RawServer server([](std::size_t, const RawRequest&) {
    std::this_thread::sleep_for(std::chrono::seconds(2));
    return std::string();
  });
  HttpRequest request = post(server, "x");
  request.timeout = std::chrono::milliseconds(300);
  EXPECT_EQ(transport_.perform(request).delivery, Delivery::kUnclear);
}

// libcurl repeats a request on a fresh connection when a kept one was closed. The server may have acted.
TEST_F(CurlTransportTest, WhatMustArriveOnceIsNotRepeatedWhenAKeptConnectionCloses) {
  RawServer server([](std::size_t number, const RawRequest&) {
    return number == 0 ? RawServer::reply(200, "kept") : std::string();
  });
  HttpRequest request = post(server, "line");
  request.repeatable = false;
  EXPECT_EQ(transport_.perform(request).delivery, Delivery::kAnswered);
  EXPECT_EQ(transport_.perform(request).delivery, Delivery::kUnclear);
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST_F(CurlTransportTest, FilesStreamFromDisk) {
  RawServer server(
      [](std::size_t, const RawRequest& request) { return RawServer::reply(200, md5_hex(request.body)); });
  const std::string content(3'000'000, 'q');
  HttpRequest request = put(server, content);
  std::atomic<std::uint64_t> sent = 0;
  request.on_sent = [&](std::uint64_t bytes) { sent = bytes; };
  const HttpResponse response = transport_.perform(request);
  EXPECT_EQ(response.body, md5_hex(content));
  EXPECT_EQ(sent, content.size());
  EXPECT_NE(server.requests().at(0).head.find("PUT /put"), std::string::npos);
}

TEST_F(CurlTransportTest, EmptyFileHasALength) {
  RawServer server([](std::size_t, const RawRequest&) { return RawServer::reply(200, ""); });
  EXPECT_EQ(transport_.perform(put(server, "")).status, 200);
  EXPECT_NE(server.requests().at(0).head.find("Content-Length: 0"), std::string::npos);
}

TEST_F(CurlTransportTest, FileOfAnotherSizeIsNotSent) {
  RawServer server([](std::size_t, const RawRequest&) { return RawServer::reply(200, ""); });
  const HttpRequest request = put(server, "content");
  write_file(dir_ / "file", "longer content");
  const HttpResponse response = transport_.perform(request);
  EXPECT_EQ(response.delivery, Delivery::kSourceChanged);
  EXPECT_NE(response.fault.find("14 bytes instead of 7"), std::string::npos) << response.fault;
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(CurlTransportTest, FileWithOtherBytesNeverArrivesWhole) {
  RawServer server([](std::size_t, const RawRequest&) { return RawServer::reply(200, ""); });
  const std::string content(300'000, 'a');
  const HttpRequest request = put(server, content);
  write_file(dir_ / "file", std::string(299'999, 'a') + "b");
  EXPECT_EQ(transport_.perform(request).delivery, Delivery::kSourceChanged);
  for (const RawRequest& seen : server.requests()) EXPECT_LT(seen.body.size(), content.size());
}

TEST_F(CurlTransportTest, FirstStopCutsOffUploadsOnly) {
  RawServer server([this](std::size_t, const RawRequest&) {
    stop_.raise(SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    return RawServer::reply(200, "done");
  });
  EXPECT_EQ(transport_.perform(post(server, "x")).body, "done");
  HttpRequest upload = put(server, "content");
  upload.finish_when_stopped = false;
  EXPECT_EQ(transport_.perform(upload).delivery, Delivery::kStopped);
}

TEST_F(CurlTransportTest, WaitingIsToldAboutOnceASecond) {
  RawServer server([](std::size_t, const RawRequest&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1'500));
    return RawServer::reply(200, "");
  });
  HttpRequest request = post(server, "x");
  int calls = 0;
  request.while_waiting = [&] { ++calls; };
  EXPECT_EQ(transport_.perform(request).status, 200);
  EXPECT_GE(calls, 1);
}

TEST_F(CurlTransportTest, ManyAtOnce) {
  RawServer server(
      [](std::size_t, const RawRequest& request) { return RawServer::reply(200, request.body); });
  std::vector<std::jthread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 5; ++k) {
        const std::string body = std::to_string(i * 100 + k);
        if (transport_.perform(post(server, body)).body == body) ++right;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(right, 40);
}

// The key belongs to the address that it was configured for, and goes nowhere else.
TEST_F(CurlTransportTest, RedirectIsNotFollowedWithTheKey) {
  RawServer elsewhere([](std::size_t, const RawRequest&) { return RawServer::reply(200, "{}"); });
  for (const int status : {301, 302, 303, 307, 308}) {
    RawServer server([&](std::size_t, const RawRequest&) {
      return RawServer::reply(status, "", "Location: " + elsewhere.url() + "/path\r\n");
    });
    HttpRequest request = post(server, "hello");
    request.headers.emplace_back("Authorization", "Basic c2VjcmV0");
    EXPECT_EQ(transport_.perform(request).status, status);
  }
  EXPECT_TRUE(elsewhere.requests().empty());
}

TEST_F(CurlTransportTest, OtherProtocolsAreRefused) {
  HttpRequest request;
  request.url = "file:///etc/hostname";
  EXPECT_NE(transport_.perform(request).delivery, Delivery::kAnswered);
}

}  // namespace
}  // namespace ranklog::sync
