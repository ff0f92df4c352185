// SPDX-License-Identifier: Apache-2.0
// What happens in an MPI job when a call fails in one process alone: it must fail in all, because
// they must go on with the same calls. Here processes are threads, each with a mesh of one rank,
// and the job lets them meet as runtime/mpi does.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "plugin/mesh/mesh.h"
#include "runtime/util/memory.h"

namespace
{

// ---- a job -----------------------------------------------------------------------------------

enum { RANKS = 3, FAILING = 1 };

// Meetings of all processes. A process that leaves takes part in one more meeting, which then fails
// in all. One that waits longer than `patience` for the others fails: then the processes do not
// make the same calls.
class Job
{
  public:
    struct End {
        xm_collective base; // first
        Job *job;
        bool has_heard;
    };
    End end[RANKS];
    std::chrono::milliseconds patience{2000};

    Job()
    {
        static const xm_collective_ops ops = {meet, nullptr, nullptr, end_run, leave};
        for (uint32_t r = 0; r < RANKS; r++)
            end[r] = {{&ops, r, RANKS}, this, false};
    }
    int waiting() // the number of processes in the present meeting
    {
        const std::lock_guard<std::mutex> held(lock);
        return n_shown;
    }

  private:
    struct Shown {
        std::string bytes;
        xm_error left; // XM_OK: the process has not left
    };
    std::mutex lock;
    std::condition_variable complete;
    Shown now[RANKS], last[RANKS];
    int n_shown = 0;
    uint64_t round = 0;

    xm_status exchange(uint32_t rank, const Shown &own, xm_error *err)
    {
        std::unique_lock<std::mutex> held(lock);
        now[rank] = own;
        const uint64_t mine = round;
        if (++n_shown == RANKS) {
            std::copy(now, now + RANKS, last);
            n_shown = 0;
            round++;
            complete.notify_all();
        }
        if (!complete.wait_for(held, patience, [&] { return round > mine; })) {
            n_shown--;
            return xm_fail(err, XM_LOST, "rank %u waits in vain", rank);
        }
        for (uint32_t r = 0; r < RANKS; r++) {
            if (last[r].left.status != XM_OK) {
                end[rank].has_heard = true;
                return xm_fail(err, last[r].left.status, "rank %u: %s", r,
                               last[r].left.text);
            }
        }
        return XM_OK;
    }
    static xm_status meet(xm_collective *c, xm_bytes mine, xm_bytes *all, xm_error *err)
    {
        auto *e = reinterpret_cast<End *>(c);
        Shown own = {};
        own.bytes.assign(reinterpret_cast<const char *>(mine.p), mine.n);
        XM_TRY(e->job->exchange(c->rank, own, err));
        for (uint32_t r = 0; r < RANKS; r++) {
            const std::string &bytes = e->job->last[r].bytes;
            all[r] = {reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()};
        }
        return XM_OK;
    }
    static xm_status end_run(xm_collective *c, xm_error *err)
    {
        return reinterpret_cast<End *>(c)->job->exchange(c->rank, {}, err);
    }
    static void leave(xm_collective *c, const xm_error *why)
    {
        auto *e = reinterpret_cast<End *>(c);
        xm_error ignored = {};
        if (!e->has_heard)
            (void)e->job->exchange(c->rank, {"", *why}, &ignored);
        e->has_heard = false;
    }
};

// ---- the part of a rank ----------------------------------------------------------------------

// A compiled model in which the call named `fails` fails. Its runs meet the others once, and make
// sequences and requests one position longer.
struct Part {
    xm_compiled base; // first
    xm_collective *end;
    std::string fails;
    std::atomic<int> alive; // sequences, requests and batches
    xm_infer control;       // of its batch

    xm_status answer(const char *call, xm_error *err) const
    {
        return fails == call ? xm_fail(err, XM_NO_MEMORY, "%s has no memory", call)
                             : XM_OK;
    }
};

template <typename Object> struct Made {
    Object base; // first
    Part *part;
    uint64_t past;
};
using Sequence = Made<xm_sequence>;
using Request = Made<xm_infer>;
using Batch = Made<xm_batch>;

// Creates an object of a part; or fails, if the part's call `call` is to fail.
template <typename Object, typename Ops>
xm_status
make(Part *p, const char *call, const Ops *ops, uint64_t past, Object **out,
     xm_error *err)
{
    XM_TRY(p->answer(call, err));
    auto *made = new Made<Object>{};
    made->base.ops = ops;
    made->part = p;
    made->past = past;
    p->alive++;
    *out = &made->base;
    return XM_OK;
}

template <typename Object>
Made<Object> *
made(Object *o)
{
    return reinterpret_cast<Made<Object> *>(o);
}

template <typename Object>
void
destroy(Object *o)
{
    made(o)->part->alive--;
    delete made(o);
}

template <typename Object>
uint64_t
past(const Object *o)
{
    return made(const_cast<Object *>(o))->past;
}

template <typename Object>
void
truncate(Object *o, uint64_t past)
{
    made(o)->past = std::min(made(o)->past, past);
}

xm_status
run_part(const Part *p, xm_error *err)
{
    xm_bytes all[RANKS];
    XM_TRY(p->answer("run", err));
    return p->end->ops->meet(p->end, {}, all, err);
}

xm_status
fork_sequence(xm_sequence *s, xm_sequence **out, xm_error *err)
{
    return make(made(s)->part, "fork", s->ops, past(s), out, err);
}

xm_status
match(xm_sequence *s, const int32_t *, uint64_t n, xm_error *err)
{
    XM_TRY(made(s)->part->answer("match", err));
    made(s)->past = n - 1;
    return XM_OK;
}

const xm_sequence_ops sequence_ops = {fork_sequence,         past<xm_sequence>,
                                      truncate<xm_sequence>, match,
                                      destroy<xm_sequence>,  nullptr};

xm_status
set_input(xm_infer *r, uint32_t, const xm_host_tensor *, xm_error *err)
{
    return made(r)->part->answer("set_input", err);
}

xm_status
infer(xm_infer *r, xm_error *err)
{
    XM_TRY(run_part(made(r)->part, err));
    made(r)->past++;
    return XM_OK;
}

xm_infer_ops
make_infer_ops()
{
    xm_infer_ops ops = {};
    ops.set_input = set_input;
    ops.infer = infer;
    ops.past = past<xm_infer>;
    ops.truncate = truncate<xm_infer>;
    ops.destroy = destroy<xm_infer>;
    return ops;
}
const xm_infer_ops infer_ops = make_infer_ops();

xm_status
run_batch(xm_batch *b, const xm_batch_row *rows, uint32_t n, xm_error *err)
{
    XM_TRY(run_part(made(b)->part, err));
    for (uint32_t i = 0; i < n; i++)
        made(rows[i].sequence)->past += rows[i].n;
    return XM_OK;
}

xm_batch_ops
make_batch_ops()
{
    xm_batch_ops ops = {};
    ops.run = run_batch;
    ops.destroy = destroy<xm_batch>;
    return ops;
}
const xm_batch_ops batch_ops = make_batch_ops();

xm_status
create_sequence(xm_compiled *c, xm_sequence **out, xm_error *err)
{
    return make(reinterpret_cast<Part *>(c), "create_sequence", &sequence_ops, 0, out,
                err);
}

xm_status
create_request(xm_compiled *c, xm_infer **out, xm_error *err)
{
    return make(reinterpret_cast<Part *>(c), "create_request", &infer_ops, 0, out, err);
}

xm_status
create_batch(xm_compiled *c, xm_batch **out, xm_error *err)
{
    auto *p = reinterpret_cast<Part *>(c);
    XM_TRY(make(p, "create_batch", &batch_ops, 0, out, err));
    (*out)->control = &p->control;
    return XM_OK;
}

xm_compiled_ops
make_part_ops()
{
    xm_compiled_ops ops = {};
    ops.create_sequence = create_sequence;
    ops.create_request = create_request;
    ops.create_batch = create_batch;
    return ops;
}
const xm_compiled_ops part_ops = make_part_ops();

xm_compiled_ops
make_mesh_ops()
{
    xm_compiled_ops ops = {};
    ops.create_sequence = xm_mesh_create_sequence;
    ops.create_request = xm_mesh_create_request;
    ops.create_batch = xm_mesh_create_batch;
    return ops;
}
const xm_compiled_ops mesh_ops = make_mesh_ops();

// ---- processes -------------------------------------------------------------------------------

struct Process {
    uint32_t rank;
    Part *part;
    xm_mesh *mesh;
    xm_status status;
    xm_error err;
};
using Call = std::function<xm_status(Process &p)>;

class MeshJob : public testing::Test
{
  protected:
    void SetUp() override
    {
        for (uint32_t r = 0; r < RANKS; r++) {
            xm_mesh &m = mesh[r];
            part[r].base = {&part_ops, 1};
            part[r].end = m.end[0] = m.job = &job.end[r].base;
            m.base = {&mesh_ops, 1};
            m.n = 1;
            m.rank[0] = &part[r].base;
            m.threads = xm_workers_create(1);
            ASSERT_NE(m.threads, nullptr);
            pthread_mutex_init(&m.lock, nullptr);
            process[r] = {r, &part[r], &m, XM_OK, {}};
        }
    }
    void TearDown() override
    {
        for (uint32_t r = 0; r < RANKS; r++) {
            EXPECT_EQ(mesh[r].base.refs, 1) << r;
            EXPECT_EQ(part[r].alive, 0) << r;
            xm_workers_free(mesh[r].threads);
            pthread_mutex_destroy(&mesh[r].lock);
        }
    }

    // Makes the call in the first n processes at once.
    void all(const Call &call, uint32_t n = RANKS)
    {
        std::vector<std::thread> threads;
        for (Process &p : process) {
            if (p.rank >= n)
                continue;
            p.err = {};
            threads.emplace_back([&] { p.status = call(p); });
        }
        for (std::thread &t : threads)
            t.join();
    }
    void all_succeed(const Call &call)
    {
        all(call);
        for (const Process &p : process)
            EXPECT_EQ(p.status, XM_OK) << p.rank << ": " << p.err.text;
    }
    // Makes the call, which is to fail in one process, and fails unless all get its error.
    void all_fail(const char *what, const Call &call)
    {
        part[FAILING].fails = what;
        all(call);
        part[FAILING].fails = "";
        expect_failed(std::string(what) + " has no memory");
    }
    void expect_failed(const std::string &why)
    {
        for (const Process &p : process) {
            EXPECT_EQ(p.status, XM_NO_MEMORY) << p.rank << ": " << p.err.text;
            EXPECT_NE(std::string(p.err.text).find(why), std::string::npos) << p.err.text;
            EXPECT_TRUE(p.rank == FAILING || strncmp(p.err.text, "rank 1: ", 8) == 0)
                << p.err.text;
        }
    }
    // Lets each allocation fail once that `call` makes in one process before it meets the others,
    // and fails unless all processes fail then.
    void each_allocation_fails(const Call &call)
    {
        for (uint64_t n = 1;; n++) {
            Process &one = process[FAILING];
            one.err = {};
            xm_fail_allocation(n);
            std::atomic<bool> has_ended{false};
            std::thread first([&] {
                one.status = call(one);
                has_ended = true;
            });
            while (job.waiting() == 0 && !has_ended)
                std::this_thread::yield();
            const bool seen = xm_fail_allocation_seen();
            xm_fail_allocation(0);
            std::vector<std::thread> others;
            for (Process &p : process) {
                if (p.rank == FAILING)
                    continue;
                p.err = {};
                others.emplace_back([&] { p.status = call(p); });
            }
            first.join();
            for (std::thread &t : others)
                t.join();
            if (!seen) {
                EXPECT_GT(n, 1u) << "it allocates nothing";
                break;
            }
            expect_failed("");
        }
    }

    Job job;
    Part part[RANKS] = {};
    xm_mesh mesh[RANKS] = {};
    Process process[RANKS];
    xm_sequence *sequence[RANKS] = {}, *fork[RANKS] = {};
    xm_infer *request[RANKS] = {};
    xm_batch *batch[RANKS] = {};

    Call new_sequence = [this](Process &p) {
        return xm_compiled_create_sequence(&p.mesh->base, &sequence[p.rank], &p.err);
    };
    Call new_request = [this](Process &p) {
        return xm_compiled_create_request(&p.mesh->base, &request[p.rank], &p.err);
    };
    Call new_batch = [this](Process &p) {
        return xm_compiled_create_batch(&p.mesh->base, &batch[p.rank], &p.err);
    };
    Call fork_it = [this](Process &p) {
        return xm_compiled_fork_sequence(sequence[p.rank], &fork[p.rank], &p.err);
    };
    Call match_it = [this](Process &p) {
        static const int32_t ids[] = {1, 2, 3};
        return sequence[p.rank]->ops->match(sequence[p.rank], ids, 3, &p.err);
    };
    // A token after the sequence.
    Call run_it = [this](Process &p) {
        static const int32_t id = 7;
        const xm_batch_row row = {sequence[p.rank], &id, 1, 1};
        return batch[p.rank]->ops->run(batch[p.rank], &row, 1, &p.err);
    };
    // A run with an input, as a program makes it: it ends when an input fails.
    Call infer_it = [this](Process &p) {
        static const xm_host_tensor t = {};
        xm_infer *r = request[p.rank];
        XM_TRY(r->ops->set_input(r, 0, &t, &p.err));
        return r->ops->infer(r, &p.err);
    };
    void expect_past(uint64_t n)
    {
        for (uint32_t r = 0; r < RANKS; r++) {
            if (sequence[r]) {
                EXPECT_EQ(sequence[r]->ops->past(sequence[r]), n) << r;
            }
            if (request[r]) {
                EXPECT_EQ(request[r]->ops->past(request[r]), n) << r;
            }
        }
    }
    void destroy_all()
    {
        for (uint32_t r = 0; r < RANKS; r++) {
            xm_compiled_destroy_batch(batch[r]);
            xm_compiled_destroy_sequence(fork[r]);
            xm_compiled_destroy_sequence(sequence[r]);
            xm_infer_destroy(request[r]);
        }
    }
};

TEST_F(MeshJob, WhatOneCannotCreateNoneHas)
{
    all_fail("create_sequence", new_sequence);
    all_fail("create_request", new_request);
    all_fail("create_batch", new_batch);
    for (uint32_t r = 0; r < RANKS; r++) {
        EXPECT_EQ(sequence[r], nullptr);
        EXPECT_EQ(request[r], nullptr);
        EXPECT_EQ(batch[r], nullptr);
    }
}

TEST_F(MeshJob, WhatCannotBeAgreedOnFails)
{
    job.patience = std::chrono::milliseconds(50);
    all(new_sequence, RANKS - 1);
    for (uint32_t r = 0; r < RANKS - 1; r++) {
        EXPECT_EQ(process[r].status, XM_LOST) << process[r].err.text;
        EXPECT_EQ(sequence[r], nullptr);
    }
}

TEST_F(MeshJob, AForkThatOneLacksNoneHas)
{
    all_succeed(new_sequence);
    all_fail("fork", fork_it);
    for (const xm_sequence *f : fork)
        EXPECT_EQ(f, nullptr);
    all_succeed(fork_it);
    destroy_all();
}

// The sequences of those that found pages are truncated.
TEST_F(MeshJob, ABeginningThatOneDoesNotFindFailsInAll)
{
    all_succeed(new_sequence);
    all_fail("match", match_it);
    expect_past(0);
    all_succeed(match_it);
    expect_past(2);
    destroy_all();
}

TEST_F(MeshJob, ARunThatFailsInOneFailsInAll)
{
    all_succeed(new_sequence);
    all_succeed(new_batch);
    all_succeed(run_it);
    all_fail("run", run_it);
    expect_past(1);
    all_succeed(run_it);
    expect_past(2);
    destroy_all();
}

// The others come to the run, and learn there that it fails.
TEST_F(MeshJob, AnInputThatOneCannotSetEndsTheRunOfAll)
{
    all_succeed(new_request);
    all_succeed(infer_it);
    all_fail("set_input", infer_it);
    expect_past(1);
    all_succeed(infer_it);
    expect_past(2);
    destroy_all();
}

TEST_F(MeshJob, AllocationsThatFailInOneFailInAll)
{
    each_allocation_fails(new_sequence);
    each_allocation_fails(new_request);
    each_allocation_fails(new_batch);
    each_allocation_fails(fork_it);
    each_allocation_fails(run_it);
    all_succeed(infer_it);
    expect_past(1);
    destroy_all();
}

} // namespace
