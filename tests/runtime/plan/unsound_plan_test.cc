// Plan files that are consistent in themselves and hold a plan that is not
// sound.
#include <gtest/gtest.h>

#include "tests/runtime/plan/plan_bytes.h"
#include "tests/runtime/plan/tiny_plan.h"

namespace weft {
namespace {

// What kernels or the executor would trip over: a header that is consistent in
// itself, and a plan that is not sound.
void ExpectUnsound(const std::function<void(PlanProto*)>& edit,
                   const std::string& why) {
  ExpectRefused(WithHeader(TinyPlan(), edit), why);
}

NodeProto* FindNode(GraphProto* graph, const std::string& op) {
  for (NodeProto& node : *graph->mutable_nodes()) {
    if (node.op() == op) return &node;
  }
  ADD_FAILURE() << "no " << op;
  return graph->mutable_nodes(0);
}

// The id of an input by name.
int InputId(const GraphProto& graph, const std::string& name) {
  for (int i = 0; i < graph.sources_size(); ++i) {
    if (graph.sources(i).name() == name) return i;
  }
  ADD_FAILURE() << "no " << name;
  return 0;
}

void SetKernel(NodeProto* node, const std::string& kernel) {
  for (AttributeProto& a : *node->mutable_attributes()) {
    if (a.name() == "kernel") {
      a.set_text(kernel);
      return;
    }
  }
  AttributeProto* a = node->add_attributes();
  a->set_name("kernel");
  a->set_text(kernel);
}

TEST(Unsound, TheUntouchedPlanRuns) {
  EXPECT_TRUE(LoadAndRun(TinyPlan()).ok()) << LoadAndRun(TinyPlan());
  EXPECT_TRUE(LoadAndRun(WithHeader(TinyPlan(), [](PlanProto*) {})).ok());
}

TEST(Unsound, OutputsBesidesLogitsAndStates) {
  // The executor lays every output that is no state into the caller's logits.
  ExpectUnsound(
      [](PlanProto* p) {
        GraphProto* g = p->mutable_buckets(1);
        OutputProto* more = g->add_outputs();
        more->set_name("more");
        more->set_value(g->sources_size());
      },
      "output is");
  ExpectUnsound(
      [](PlanProto* p) {
        for (OutputProto& o : *p->mutable_buckets(0)->mutable_outputs()) {
          if (o.name() == "logits") o.set_name("logit");
        }
      },
      "want logits");
  ExpectUnsound(
      [](PlanProto* p) {
        auto* outputs = p->mutable_buckets(0)->mutable_outputs();
        for (int i = 0; i < outputs->size(); ++i) {
          if (outputs->Get(i).name() == "logits") {
            outputs->DeleteSubrange(i, 1);
            return;
          }
        }
      },
      "not sound");  // what was the output has no place
}

TEST(Unsound, VocabularyOfAnotherSize) {
  ExpectUnsound(
      [](PlanProto* p) {
        p->mutable_model()->set_vocabulary_size(p->model().vocabulary_size() +
                                                1);
      },
      "tokens for a model of");
  // Consistent with the vocabulary, but not with tables and logits.
  ExpectUnsound(
      [](PlanProto* p) {
        p->mutable_vocabulary()->add_tokens("more");
        p->mutable_model()->set_vocabulary_size(p->model().vocabulary_size() +
                                                1);
      },
      "illegal plan");
}

TEST(Unsound, IndicesThatNobodyChecks) {
  ExpectUnsound(
      [](PlanProto* p) {
        GraphProto* g = p->mutable_buckets(1);
        FindNode(g, "embed")->set_inputs(0, InputId(*g, "sequence"));
      },
      "an index cannot be 'sequence'");
  ExpectUnsound(
      [](PlanProto* p) {
        GraphProto* g = p->mutable_buckets(1);
        FindNode(g, "embed")->set_inputs(0, InputId(*g, "positions"));
      },
      "a table of");
  ExpectUnsound(
      [](PlanProto* p) {
        GraphProto* g = p->mutable_buckets(1);
        FindNode(g, "attention")->set_inputs(4, InputId(*g, "positions"));
      },
      "an index cannot be 'positions'");
  // A weight in place of an input.
  ExpectUnsound(
      [](PlanProto* p) {
        GraphProto* g = p->mutable_buckets(1);
        SourceProto* ids = g->mutable_sources(InputId(*g, "ids"));
        ids->set_kind(SourceProto::WEIGHT);
        ids->mutable_type()->mutable_dims(0)->set_symbol(DimProto::NUMBER);
        ids->mutable_type()->mutable_dims(0)->set_value(8);
        ids->set_name(p->weights(0).name());
      },
      "");
  ExpectUnsound(
      [](PlanProto* p) {
        GraphProto* g = p->mutable_buckets(1);
        g->mutable_sources(InputId(*g, "ids"))->set_name("numbers");
      },
      "no standard input");
}

TEST(Unsound, FewerOutputRowsThanTokens) {
  ExpectUnsound([](PlanProto* p) { p->mutable_buckets(1)->set_rows(1); },
                "output rows");
}

TEST(Unsound, BucketsThatDiffer) {
  ExpectUnsound([](PlanProto* p) { p->mutable_buckets(0)->set_context(1); },
                "context");
  // The cache is made for the last bucket's states.
  ExpectUnsound(
      [](PlanProto* p) {
        GraphProto* g = p->mutable_buckets(0);
        for (SourceProto& s : *g->mutable_sources()) {
          if (s.kind() == SourceProto::STATE) {
            s.mutable_type()->set_dtype("f32");
          }
        }
        for (NodeProto& n : *g->mutable_nodes()) {
          // Kernels are of a type of cache; those of F32 would do.
          for (AttributeProto& a : *n.mutable_attributes()) {
            const size_t at = a.text().find("_f16_");
            if (at != std::string::npos)
              a.mutable_text()->replace(at, 5, "_f32_");
          }
          for (ResultProto& r : *n.mutable_results()) {
            if (r.type().layout() == "keys" || r.type().layout() == "values") {
              r.mutable_type()->set_dtype("f32");
            }
          }
        }
      },
      "not the same");
  ExpectUnsound(
      [](PlanProto* p) {
        p->mutable_buckets()->SwapElements(0, 1);
        p->mutable_options()->set_buckets(0, 8);
        p->mutable_options()->set_buckets(1, 1);
      },
      "ascending");
}

TEST(Unsound, KernelsThatAreNotTheirs) {
  ExpectUnsound(
      [](PlanProto* p) {
        SetKernel(FindNode(p->mutable_buckets(0), "embed"), "softmax_ref");
      },
      "is for softmax");
  ExpectUnsound(
      [](PlanProto* p) {
        SetKernel(FindNode(p->mutable_buckets(0), "embed"), "no_such");
      },
      "kernel no_such");
  // A view is not run, but its kernel's scratch would be asked for.
  ExpectUnsound(
      [](PlanProto* p) {
        SetKernel(FindNode(p->mutable_buckets(0), "slice"), "attention_ref");
      },
      "a view has no kernel");
}

TEST(Unsound, PlacesInTheArena) {
  ExpectUnsound(
      [](PlanProto* p) {
        for (NodeProto& n : *p->mutable_buckets(1)->mutable_nodes()) {
          for (ResultProto& r : *n.mutable_results()) {
            if (r.offset() > 0) r.set_offset(0);
          }
        }
      },
      "");
  ExpectUnsound(
      [](PlanProto* p) {
        p->mutable_buckets(1)->set_arena_bytes(p->buckets(1).arena_bytes() -
                                               64);
      },
      "leave the arena");
  ExpectUnsound(
      [](PlanProto* p) {
        p->mutable_buckets(1)->set_arena_bytes(
            std::numeric_limits<int64_t>::max());
      },
      "is no size");
  ExpectUnsound(
      [](PlanProto* p) {
        ResultProto* r =
            FindNode(p->mutable_buckets(1), "slice")->mutable_results(0);
        r->set_offset(r->offset() + 64);
      },
      "");
}

TEST(Unsound, WeightsOfOtherSizes) {
  for (int i = 0; i < 3; ++i) {
    ExpectUnsound(
        [i](PlanProto* p) {
          p->mutable_weights(i)->set_bytes(p->weights(i).bytes() - 1);
        },
        "bytes");
  }
  ExpectUnsound(
      [](PlanProto* p) {
        p->mutable_weights(1)->set_offset(p->weights(0).offset());
      },
      "cannot be");
  ExpectUnsound(
      [](PlanProto* p) {
        p->mutable_weights(p->weights_size() - 1)->set_offset(int64_t{1} << 62);
      },
      "cannot be");
  ExpectUnsound([](PlanProto* p) { p->mutable_weights(0)->set_name("other"); },
                "is not in its table");
  ExpectUnsound(
      [](PlanProto* p) {
        SourceProto* s = p->mutable_buckets(0)->mutable_sources(0);
        ASSERT_EQ(s->kind(), SourceProto::WEIGHT);
        s->mutable_type()->set_layout("keys");
      },
      "has the layout keys");
}

TEST(Unsound, ImpossibleSizes) {
  ExpectUnsound(
      [](PlanProto* p) {
        for (GraphProto& g : *p->mutable_buckets()) {
          g.set_context(int64_t{1} << 31);
        }
      },
      "context");
  ExpectUnsound(
      [](PlanProto* p) { p->mutable_options()->set_buckets(1, 1 << 30); },
      "65536");
  ExpectUnsound([](PlanProto* p) { p->clear_buckets(); }, "0 graphs for 2");
  ExpectUnsound([](PlanProto* p) { p->clear_options(); }, "unknown");
}

}  // namespace
}  // namespace weft
