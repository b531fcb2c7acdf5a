#include "harness/isolation/replay_channel.h"

#include <nlohmann/json.hpp>

#include "harness/isolation/child_process.h"
#include "reference/contract/families.h"
#include "reports/json.h"

namespace attndiff {
namespace {

using Json = nlohmann::ordered_json;

/// CBOR, because a path need not be UTF-8.
void send(const Json& event) {
  std::string message;
  Json::to_cbor(event, message);
  send_message(message);
}

/// A stage of the family that fixtures have, by what on_offered() says of it; null where it says none.
const StageInfo* stage_named(const Json& name) {
  return name.is_null() ? nullptr : family_named(ModelConfig{}.family).find(name.get<std::string>());
}

CallPlace place_from(const Json& json) {
  CallPlace place;
  json.at("candidate").get_to(place.candidate);
  json.at("mode").get_to(place.mode);
  json.at("step").get_to(place.step);
  json.at("start_pos").get_to(place.start_pos);
  json.at("tokens").get_to(place.tokens);
  json.at("layer").get_to(place.layer);
  json.at("layer_id").get_to(place.layer_id);
  json.at("layer_kind").get_to(place.layer_kind);
  return place;
}

}  // namespace

void ReplaySender::on_fixture(std::size_t layer_calls) { send({{"fixture", layer_calls}}); }
void ReplaySender::on_layer_call(std::size_t index) { send({{"layer_call", index}}); }

void ReplaySender::on_enter(const CallPlace& place) {
  send({{"enter",
         {{"candidate", place.candidate},
          {"mode", place.mode},
          {"step", place.step},
          {"start_pos", place.start_pos},
          {"tokens", place.tokens},
          {"layer", place.layer},
          {"layer_id", place.layer_id},
          {"layer_kind", place.layer_kind}}}});
}

void ReplaySender::on_offered(const StageInfo& stage, const StageInfo* next) {
  send({{"offered", stage.name}, {"next", next == nullptr ? Json() : Json(next->name)}});
}

void ReplaySender::on_return() { send({{"return", true}}); }

void ReplaySender::on_comparison(const ComparisonRecord& comparison) {
  FixtureReport one;
  one.comparisons.push_back(comparison);
  send({{"comparison", to_json(one)}});
}

void ReplaySender::done(const FixtureReport& report) {
  FixtureReport rest = report;
  rest.comparisons.clear();
  send({{"done", to_json(rest)}});
}

void ReplaySender::failed(const Error& error) {
  const ErrorDetails& d = error.details();
  send({{"failed", static_cast<int>(error.kind())}, {"details", {d.file, d.object, d.problem, d.expected, d.found}}});
}

void ReplayReceiver::take(const std::string& message) {
  const std::string source = "message of a child process";
  try {
    const Json event = Json::from_cbor(message);
    const std::string kind = event.begin().key();
    const Json& value = event.begin().value();
    if (kind == "fixture") {
      listener_.on_fixture(value.get<std::size_t>());
    } else if (kind == "layer_call") {
      listener_.on_layer_call(value.get<std::size_t>());
    } else if (kind == "enter") {
      listener_.on_enter(place_from(value));
    } else if (kind == "offered") {
      listener_.on_offered(*stage_named(value), stage_named(event.at("next")));
    } else if (kind == "return") {
      listener_.on_return();
    } else if (kind == "comparison") {
      listener_.on_comparison(fixture_report_from_json(value, source).comparisons.at(0));
    } else if (kind == "done") {
      done_ = fixture_report_from_json(value, source);
    } else if (kind == "failed") {
      const auto& d = event.at("details");
      failed_.emplace(
          static_cast<ErrorKind>(value.get<int>()),
          ErrorDetails{.file = d.at(0), .object = d.at(1), .problem = d.at(2), .expected = d.at(3), .found = d.at(4)});
    }
  } catch (const nlohmann::json::exception& e) {
    throw Error(ErrorKind::internal, source + ": " + e.what());
  }
}

}  // namespace attndiff
