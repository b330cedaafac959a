#pragma once
// Owners of libcurl's handles.

#include <curl/curl.h>

#include <memory>

namespace ranklog::sync {

struct CurlEasyClose {
  void operator()(CURL* handle) const noexcept { curl_easy_cleanup(handle); }
};
using CurlEasy = std::unique_ptr<CURL, CurlEasyClose>;

struct CurlMultiClose {
  void operator()(CURLM* handle) const noexcept { curl_multi_cleanup(handle); }
};
using CurlMulti = std::unique_ptr<CURLM, CurlMultiClose>;

struct CurlListFree {
  void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
};
using CurlList = std::unique_ptr<curl_slist, CurlListFree>;

}  // namespace ranklog::sync
