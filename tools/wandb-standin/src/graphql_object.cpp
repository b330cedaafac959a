#include "graphql_object.hpp"

#include <algorithm>
#include <charconv>

namespace ranklog::standin {
namespace {

std::size_t index_after(const Json& arguments) {
  const Json after = arguments.value("after", Json(nullptr));
  if (!after.is_string() || after.get_ref<const std::string&>().empty()) return 0;
  const auto& text = after.get_ref<const std::string&>();
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw ApiError(400, "invalid cursor \"" + text + "\"");
  }
  return index + 1;
}

std::size_t page_length(const Json& arguments, std::size_t fallback) {
  const Json first = arguments.value("first", Json(nullptr));
  return first.is_number_integer() && first.get<long long>() >= 0 ? first.get<std::size_t>() : fallback;
}

}  // namespace

ObjectPtr plain_object(const std::string& type, const Json& pairs) {
  auto object = std::make_shared<Object>(type);
  for (const auto& [name, value] : pairs.items()) object->value(name, value);
  return object;
}

ObjectPtr connection(const std::string& type, std::vector<ObjectPtr> nodes, const Json& arguments) {
  const std::size_t total = nodes.size();
  const std::size_t begin = std::min(index_after(arguments), total);
  const std::size_t end = begin + std::min(page_length(arguments, total), total - begin);
  std::vector<ObjectPtr> edges;
  for (std::size_t i = begin; i < end; ++i) {
    auto edge = std::make_shared<Object>(type + "Edge");
    edge->value("cursor", std::to_string(i));
    edge->field("node", {}, [node = nodes[i]](const Json&) { return Node(node); });
    // Edges of versions carry the version beside the node.
    if (const Object::Field* version = nodes[i]->find("version"))
      edge->field("version", {}, version->resolve);
    edges.push_back(edge);
  }
  const Json cursor = end > begin ? Json(std::to_string(end - 1)) : Json(nullptr);
  const auto page = plain_object("PageInfo", {{"endCursor", cursor}, {"hasNextPage", end < total}});
  auto result = std::make_shared<Object>(type + "Connection");
  result->value("totalCount", total);
  result->field("pageInfo", {}, [page](const Json&) { return Node(page); });
  result->field("edges", {}, [edges](const Json&) { return Node(edges); });
  return result;
}

}  // namespace ranklog::standin
