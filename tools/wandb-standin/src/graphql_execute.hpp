#pragma once
// Runs one operation of a document against root objects, as a GraphQL server does: variables are checked
// against their declared types, the answer has the fields that were asked for, and a field or an argument
// that does not exist is an error.

#include "graphql_document.hpp"
#include "graphql_object.hpp"

namespace ranklog::standin {

// Returns the "data" object. Throws ApiError.
[[nodiscard]] Json execute(const Document& document, const Operation& operation, const Json& variables,
                           const ObjectPtr& root);

}  // namespace ranklog::standin
