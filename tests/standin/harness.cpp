#include "harness.hpp"

#include <httplib.h>

namespace ranklog::standin {
namespace {

constexpr const char* kUpsert = R"(
  mutation UpsertBucket($id: String, $name: String, $project: String, $entity: String, $groupName: String,
      $displayName: String, $notes: String, $config: JSONString, $jobType: String, $tags: [String!],
      $summaryMetrics: JSONString) {
    upsertBucket(input: {id: $id, name: $name, modelName: $project, entityName: $entity,
        groupName: $groupName, displayName: $displayName, notes: $notes, config: $config, jobType: $jobType,
        tags: $tags, summaryMetrics: $summaryMetrics}) {
      bucket { id name displayName config historyLineCount project { id name entity { id name } } }
      inserted
    }
  })";

Reply reply_of(const httplib::Result& result) {
  if (!result) return {};
  Json body = Json::parse(result->body, nullptr, false);
  if (body.is_discarded()) body = nullptr;
  return {result->status, std::move(body), result->body, {result->headers.begin(), result->headers.end()}};
}

std::unique_ptr<httplib::Client> connect(int port) {
  auto client = std::make_unique<httplib::Client>("127.0.0.1", port);
  client->set_read_timeout(30);
  return client;
}

// The library takes the content type apart from the other headers.
std::pair<httplib::Headers, std::string> split_headers(const Headers& headers) {
  httplib::Headers rest(headers.begin(), headers.end());
  const auto type = rest.find("Content-Type");
  std::string content_type = type == rest.end() ? "" : type->second;
  rest.erase("Content-Type");
  return {std::move(rest), std::move(content_type)};
}

// The path of an absolute URL, "/upload/..." of "http://host:port/upload/...".
std::string path_of(const std::string& url) {
  return url.substr(url.find('/', url.find("//") + 2));
}

}  // namespace

std::string Reply::error() const {
  return body.is_object() && body.contains("errors") ? body["errors"][0]["message"].get<std::string>() : "";
}

StandinTest::StandinTest(Settings settings, Json script)
    : settings_(std::move(settings)), script_(std::move(script)) {
  start();
}

StandinTest::~StandinTest() {
  stop();
}

void StandinTest::start() {
  ServerOptions options;
  options.folder = dir_ / "state";
  options.settings = settings_;
  options.script = script_;
  server_ = std::make_unique<HttpServer>(std::move(options));
  thread_ = std::thread([this] { server_->run(); });
}

void StandinTest::stop() {
  server_->stop();
  thread_.join();
  server_.reset();
}

void StandinTest::restart() {
  stop();
  start();
}

std::shared_ptr<void> StandinTest::idle_connection() const {
  std::shared_ptr<httplib::Client> client = connect(server_->port());
  client->set_keep_alive(true);
  if (!client->Get("/standin/state")) throw std::runtime_error("the server does not answer");
  return client;
}

Reply StandinTest::post(const std::string& path, const Json& body) const {
  return post_as(kKey, path, body);
}

Reply StandinTest::post_as(const std::string& key, const std::string& path, const Json& body) const {
  const auto client = connect(server_->port());
  if (!key.empty()) client->set_basic_auth("api", key);
  return reply_of(client->Post(path, body.dump(), "application/json"));
}

Reply StandinTest::post_bytes(const std::string& path, const std::string& bytes,
                              const Headers& headers) const {
  const auto client = connect(server_->port());
  client->set_basic_auth("api", kKey);
  const auto [rest, content_type] = split_headers(headers);
  return reply_of(client->Post(path, rest, bytes, content_type));
}

Reply StandinTest::put(const std::string& url, const std::string& bytes, const Headers& headers) const {
  const auto [rest, content_type] = split_headers(headers);
  return reply_of(connect(server_->port())->Put(path_of(url), rest, bytes, content_type));
}

Reply StandinTest::get(const std::string& url) const {
  return get_from(server_->port(), path_of(url));
}

Reply StandinTest::graphql(const std::string& query, const Json& variables) const {
  return post("/graphql", {{"query", query}, {"variables", variables}});
}

Reply StandinTest::stream(const std::string& run, const Json& body) const {
  return post("/files/rehearsal/p/" + run + "/file_stream", body);
}

Reply StandinTest::upsert(const std::string& run, const Json& more) const {
  Json variables = {{"name", run}, {"project", "p"}, {"entity", "rehearsal"}};
  variables.update(more);
  return graphql(kUpsert, variables);
}

Json StandinTest::run_fields(const std::string& run, const std::string& fields) const {
  const Reply reply = graphql(
      "query RunFacts($run: String!) { project(name: \"p\", entityName: \"rehearsal\") "
      "{ run(name: $run) { " +
          fields + " } } }",
      {{"run", run}});
  if (!reply.error().empty()) throw std::runtime_error(reply.error());
  return reply.data()["project"]["run"];
}

Reply get_from(int port, const std::string& path) {
  return reply_of(connect(port)->Get(path));
}

Json history_chunk(std::uint64_t offset, const std::vector<std::string>& lines) {
  return {{"files", {{"wandb-history.jsonl", {{"offset", offset}, {"content", lines}}}}}};
}

}  // namespace ranklog::standin
