// Random damage to a protobuf message that leaves it readable: what a flipped
// bit seldom does, numbers and references changed one at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "google/protobuf/message.h"

namespace weft {

// The messages inside and the one itself, skipping those named `skip`.
inline void Collect(google::protobuf::Message* message, const std::string& skip,
                    std::vector<google::protobuf::Message*>* all) {
  if (message->GetDescriptor()->name() == skip) return;
  all->push_back(message);
  const auto* reflection = message->GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const auto* field : fields) {
    if (field->cpp_type() != field->CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      Collect(reflection->MutableMessage(message, field), skip, all);
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(*message, field); ++i) {
      Collect(reflection->MutableRepeatedMessage(message, field, i), skip, all);
    }
  }
}

inline int64_t MutateNumber(int64_t value, std::mt19937_64* random) {
  static constexpr int64_t kNumbers[] = {-1,
                                         0,
                                         1,
                                         2,
                                         3,
                                         31,
                                         32,
                                         64,
                                         4096,
                                         65536,
                                         int64_t{1} << 31,
                                         int64_t{1} << 32,
                                         int64_t{1} << 40,
                                         std::numeric_limits<int64_t>::max(),
                                         std::numeric_limits<int64_t>::min()};
  switch ((*random)() % 6) {
    case 0:
      return value + 1;
    case 1:
      return value - 1;
    case 2:
      return static_cast<int64_t>(static_cast<uint64_t>(value) * 2);
    case 3:
      return value / 2;
    case 4:
      return value + static_cast<int64_t>((*random)() % 64) - 32;
    default:
      return kNumbers[(*random)() % (sizeof(kNumbers) / sizeof(kNumbers[0]))];
  }
}

// Changes one field of one message; strings become those of other messages of
// the kind, repeated fields lose, double or swap an element.
inline void MutateMessage(google::protobuf::Message* root,
                          const std::string& skip, std::mt19937_64* random) {
  using google::protobuf::FieldDescriptor;
  std::vector<google::protobuf::Message*> all;
  Collect(root, skip, &all);
  google::protobuf::Message* message = all[(*random)() % all.size()];
  const auto* reflection = message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  if (fields.empty()) return;
  const FieldDescriptor* field = fields[(*random)() % fields.size()];
  if (field->is_repeated()) {
    const int size = reflection->FieldSize(*message, field);
    const int at = static_cast<int>((*random)() % size);
    const int other = static_cast<int>((*random)() % size);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
      const int64_t value =
          (*random)() % 2 == 0
              ? static_cast<int64_t>((*random)() % 64)
              : MutateNumber(reflection->GetRepeatedInt32(*message, field, at),
                             random);
      reflection->SetRepeatedInt32(message, field, at,
                                   static_cast<int32_t>(value));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
      reflection->SetRepeatedInt64(
          message, field, at,
          MutateNumber(reflection->GetRepeatedInt64(*message, field, at),
                       random));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
               (*random)() % 2 == 0) {
      reflection->AddMessage(message, field)
          ->CopyFrom(reflection->GetRepeatedMessage(*message, field, at));
    } else if ((*random)() % 2 == 0) {
      reflection->SwapElements(message, field, at, other);
    } else {
      reflection->RemoveLast(message, field);
    }
    return;
  }
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      reflection->SetInt32(message, field,
                           static_cast<int32_t>(MutateNumber(
                               reflection->GetInt32(*message, field), random)));
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      reflection->SetInt64(
          message, field,
          MutateNumber(reflection->GetInt64(*message, field), random));
      break;
    case FieldDescriptor::CPPTYPE_ENUM:
      reflection->SetEnumValue(message, field,
                               static_cast<int>((*random)() % 5));
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      static constexpr double kDoubles[] = {
          0,
          -1,
          1e300,
          -1e-300,
          std::numeric_limits<double>::infinity(),
          std::numeric_limits<double>::quiet_NaN()};
      reflection->SetDouble(message, field, kDoubles[(*random)() % 6]);
      break;
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      std::vector<google::protobuf::Message*> alike;
      for (auto* candidate : all) {
        if (candidate->GetDescriptor() == message->GetDescriptor()) {
          alike.push_back(candidate);
        }
      }
      const auto* other = alike[(*random)() % alike.size()];
      reflection->SetString(message, field,
                            other->GetReflection()->GetString(*other, field));
      break;
    }
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      std::vector<google::protobuf::Message*> alike;
      for (auto* candidate : all) {
        if (candidate->GetDescriptor() == field->message_type()) {
          alike.push_back(candidate);
        }
      }
      if (alike.empty()) break;
      const std::unique_ptr<google::protobuf::Message> copy(alike[0]->New());
      copy->CopyFrom(*alike[(*random)() % alike.size()]);
      reflection->MutableMessage(message, field)->CopyFrom(*copy);
      break;
    }
    default:
      break;
  }
}

}  // namespace weft
