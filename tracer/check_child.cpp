// See check_child.h: the interpreted run, descriptions, and the verdict.
#include "tracer/check_child.h"

#include <marshal.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <new>
#include <string>
#include <vector>

#include "runtime/base/stress.h"
#include "runtime/exec/own_work.h"
#include "tracer/check_isolation.h"
#include "tracer/generator_ends.h"

namespace dynvm::tracer::check {

namespace {

constexpr int kMostVisits = 64;

// What python/dynvm/check gives; owned for good.
struct Functions {
  PyObject *describe = nullptr, *prepare = nullptr, *disturb = nullptr, *missing = nullptr, *report = nullptr,
           *count = nullptr;
};
Functions functions;
bool tried = false;

// Owned.
class Object {
 public:
  explicit Object(PyObject* object) : object_(object) {}
  ~Object() { Py_XDECREF(object_); }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_;
};

// The present exception's text, which is cleared.
std::string take_error() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  std::string text = type != nullptr ? reinterpret_cast<PyTypeObject*>(type)->tp_name : "no exception";
  if (const Object said(value != nullptr ? PyObject_Str(value) : nullptr); said)
    if (const char* words = PyUnicode_AsUTF8(said.get())) text += std::string(": ") + words;
  PyErr_Clear();
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return text;
}

template <size_t size>
void keep(char (&to)[size], const std::string& text) {
  const size_t length = std::min(text.size(), size - 1);
  std::memcpy(to, text.data(), length);
  to[length] = 0;
}

// Runs a file of the package's folder `check` in a namespace of its own; null with an exception.
PyObject* run_file(PyObject* folder, const char* name) {
  const Object path(PyUnicode_FromFormat("%U/check/%s", folder, name));
  const Object io(PyImport_ImportModule("_io"));
  const Object file(path && io ? PyObject_CallMethod(io.get(), "open_code", "O", path.get()) : nullptr);
  const Object text(file ? PyObject_CallMethod(file.get(), "read", nullptr) : nullptr);
  if (!text) return nullptr;
  if (const Object closed(PyObject_CallMethod(file.get(), "close", nullptr)); !closed) return nullptr;
  const Object code(Py_CompileStringObject(PyBytes_AS_STRING(text.get()), path.get(), Py_file_input, nullptr, -1));
  Object space(PyDict_New());
  const Object own_name(PyUnicode_FromFormat("dynvm.check.%s", name));
  if (!code || !space || !own_name || PyDict_SetItemString(space.get(), "__builtins__", PyEval_GetBuiltins()) < 0 ||
      PyDict_SetItemString(space.get(), "__name__", own_name.get()) < 0)
    return nullptr;
  const Object done(PyEval_EvalCode(code.get(), space.get(), space.get()));
  return done ? space.release() : nullptr;
}

bool load() {
  const Object importing(PyImport_ImportModule("_frozen_importlib_external"));
  const Object finder(importing ? PyObject_GetAttrString(importing.get(), "PathFinder") : nullptr);
  const Object spec(finder ? PyObject_CallMethod(finder.get(), "find_spec", "s", "dynvm") : nullptr);
  const Object folders(spec && spec.get() != Py_None ? PyObject_GetAttrString(spec.get(), "submodule_search_locations")
                                                     : nullptr);
  const Object folder(folders ? PySequence_GetItem(folders.get(), 0) : nullptr);
  if (!folder) {
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_ImportError, "the package dynvm is not there");
    return false;
  }
  const Object describing(run_file(folder.get(), "describe.py")),
      comparing(describing ? run_file(folder.get(), "compare.py") : nullptr);
  if (!comparing) return false;
  const auto take = [](const Object& space, const char* name) {
    return Py_XNewRef(PyDict_GetItemString(space.get(), name));
  };
  Functions found;
  found.describe = take(describing, "describe");
  found.prepare = take(describing, "prepare");
  found.disturb = take(describing, "disturb");
  found.missing = take(describing, "MISSING");
  found.report = take(comparing, "report");
  found.count = take(comparing, "count");
  functions = found;
  return true;
}

PyObject* or_missing(PyObject* object) { return object != nullptr ? object : functions.missing; }

// (code, slots, stack, globals) of a frame whose stack ends at sp; null: nothing of that is described. dead: nor of its
// variables.
PyObject* frame_parts(_PyInterpreterFrame* frame, PyObject* const* sp, bool dead) {
  PyCodeObject* code = vm::FrameView::code(frame);
  PyObject* const* slots = vm::FrameView::locals(frame);
  const int count = dead ? 0 : vm::FrameView::local_count(frame);
  PyObject* const* base = vm::FrameView::stack_base(frame);
  const Object locals(PyTuple_New(count)), stack(PyTuple_New(sp != nullptr ? std::max<Py_ssize_t>(sp - base, 0) : 0));
  if (!locals || !stack) return nullptr;
  for (int i = 0; i < count; i++) PyTuple_SET_ITEM(locals.get(), i, Py_NewRef(or_missing(slots[i])));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(stack.get()); i++)
    PyTuple_SET_ITEM(stack.get(), i, Py_NewRef(or_missing(base[i])));
  return PyTuple_Pack(4, reinterpret_cast<PyObject*>(code), locals.get(), stack.get(), vm::FrameView::globals(frame));
}

// A list of entries, or null with an exception. exception: under way, or null; the stack of the frame that raises is in
// no defined state then.
PyObject* described(const vm::ThreadView& view, _PyInterpreterFrame* root, PyObject* exception) {
  static const int most_objects = base::stress_number("objects", 3000);
  const std::vector<LiveFrame> frames = live_frames(view, root);
  const Object list(PyList_New(0));
  if (!list) return nullptr;
  for (size_t i = 0; i < frames.size(); i++) {
    const bool raises = exception != nullptr && i + 1 == frames.size();
    const bool below = i + 1 < frames.size() && frames[i + 1].continuation == vm::Continuation::kReplace;
    const Object parts(
        frame_parts(frames[i].frame, raises ? nullptr : frames[i].sp - below, i == 0 && control()->stop.returns));
    if (!parts || PyList_Append(list.get(), parts.get()) < 0) return nullptr;
  }
  return PyObject_CallFunction(functions.describe, "OOi", list.get(), exception != nullptr ? exception : Py_None,
                               most_objects);
}

// The exception that is set, as an object, or null; it is under way no longer.
PyObject* take_exception() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (type == nullptr) return nullptr;
  PyErr_NormalizeException(&type, &value, &traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return value;
}

void begin_process() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGALRM, SIG_DFL);
  alarm(kPatience);
}

void wait(sem_t* semaphore) {
  while (sem_wait(semaphore) != 0) {
  }
}

// ---- the interpreted run

struct Interpreted {
  _PyInterpreterFrame* root = nullptr;
  int unit = 0;
  bool function = false, second = false, begun = false;
  uint64_t arrivals = 0;
  size_t calls = 0;      // the instruction that is carried out calls this frame of the place; 0: none
  int visits = 0;
  bool at_stop = false;  // the instruction that is carried out stands where an exception is to be raised
  std::string raised;    // the last exception
  std::string nearly;    // how it came to the instruction otherwise
};
Interpreted& interpreted = *new Interpreted;

[[noreturn]] void come(Came how, const char* why) {
  Control& c = *control();
  c.came = how;
  std::snprintf(c.why, sizeof c.why, "%s", why);
  sem_post(&c.come);
  for (;;) pause();  // the script's process ends it
}

void forbidden(const char* why) { come(Came::kSkipped, why); }

// Where the trace has left a tuple of a generator's items, or an object's truth, the interpreter does the same; the instruction that comes takes either.
void take_operand(vm::ThreadView& view) {
  const Stop& stop = control()->stop;
  if (stop.truth && !PyBool_Check(view.sp[-1])) {
    const int truth = PyObject_IsTrue(view.sp[-1]);
    if (truth < 0) come(Came::kSkipped, ("an object that is asked for its truth has raised " + take_error()).c_str());
    PyObject* object = std::exchange(view.sp[-1], Py_NewRef(truth != 0 ? Py_True : Py_False));
    Py_DECREF(object);
  }
  if (stop.given != 0 && PyGen_CheckExact(view.sp[-1])) {
    PyObject* item = PyIter_Next(view.sp[-1]);
    if (item == nullptr && PyErr_Occurred() != nullptr) come(Came::kSkipped, ("a generator has raised " + take_error()).c_str());
    PyObject* generator = std::exchange(view.sp[-1], item != nullptr ? item : Py_NewRef(end_of_generator()));
    PyObject* callee = std::exchange(view.sp[-stop.given], Py_NewRef(given_by_next()));
    Py_DECREF(generator);
    Py_DECREF(callee);
  }
  if (stop.taken == 0 || !PyGen_CheckExact(view.sp[-stop.taken])) return;
  const Object items(PyList_New(0));
  while (items && (stop.most == 0 || static_cast<size_t>(PyList_GET_SIZE(items.get())) < stop.most)) {
    const Object item(PyIter_Next(view.sp[-stop.taken]));
    if (!item || PyList_Append(items.get(), item.get()) < 0) break;
  }
  Object taken(items && PyErr_Occurred() == nullptr ? PyList_AsTuple(items.get()) : nullptr);
  if (!taken) come(Came::kSkipped, ("a generator that is taken apart has raised " + take_error()).c_str());
  PyObject* generator = std::exchange(view.sp[-stop.taken], taken.release());
  Py_DECREF(generator);
}

void visit(vm::ThreadView& view, bool raised) {
  Control& c = *control();
  if (++interpreted.visits > kMostVisits) come(Came::kOver, "the place is passed too often");
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  if (raised) {
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
  }
  const Object entries(described(view, interpreted.root, value));
  const Object bytes(entries ? PyMarshal_WriteObjectToString(entries.get(), 4) : nullptr);
  if (!bytes) come(Came::kSkipped, ("describing failed: " + take_error()).c_str());
  c.size = static_cast<size_t>(PyBytes_GET_SIZE(bytes.get()));
  if (c.size > kRegion) come(Came::kSkipped, "too much to describe");
  std::memcpy(description(), PyBytes_AS_STRING(bytes.get()), c.size);
  if (raised) PyErr_Restore(type, value, traceback);
  c.came = Came::kDescribed;
  c.visits = interpreted.visits;
  sem_post(&c.come);
  wait(&c.next);
}

std::string text_of(const Position& at) {
  return std::string(PyUnicode_AsUTF8(at.code->co_qualname)) + " unit " + std::to_string(at.unit) + " " +
         std::string(vm::continuation_name(at.continuation));
}

bool is_at_stop(const vm::ThreadView& view) {
  const Stop& stop = control()->stop;
  const Position& last = stop.place[stop.depth - 1];
  PyCodeObject* code = vm::FrameView::code(view.frame);
  if (code != last.code || vm::unit_of(code, view.ip) != last.unit) return false;
  const Place place = checked_place(live_frames(view, interpreted.root));
  if (place.size() != stop.depth || !std::equal(place.begin(), place.end(), stop.place)) {
    const auto [here, there] = std::mismatch(place.begin(), place.end(), stop.place, stop.place + stop.depth);
    interpreted.nearly =
        "it comes to that instruction called in another way: " +
        (here == place.end()                ? "from fewer frames"
         : there == stop.place + stop.depth ? "from more frames"
                                            : "from " + text_of(*here) + " and not " + text_of(*there));
    return false;
  }
  interpreted.nearly = "it comes there after " + std::to_string(interpreted.arrivals) + " arrivals at the header";
  return interpreted.arrivals >= stop.from && interpreted.arrivals <= stop.to;
}

// Which frame of the place the instruction would call: the frames are those up to there.
size_t frame_called(const vm::ThreadView& view) {
  const Stop& stop = control()->stop;
  PyCodeObject* code = vm::FrameView::code(view.frame);
  const int unit = vm::unit_of(code, view.ip);
  const auto is_here = [&](const Position& at) { return at.code == code && at.unit == unit; };
  if (std::none_of(stop.place, stop.place + stop.depth - 1, is_here)) return 0;
  const Place place = checked_place(live_frames(view, interpreted.root));
  return place.size() < stop.depth && std::equal(place.begin(), place.end(), stop.place) ? place.size() : 0;
}

[[noreturn]] void leave(std::string how) {
  for (const std::string& more :
       {interpreted.nearly, interpreted.raised.empty() ? "" : "it raised " + interpreted.raised})
    if (!more.empty()) how += "; " + more;
  come(Came::kOver, how.c_str());
}

vm::HookResult on_instruction(vm::ThreadView& view) {
  const Stop& stop = control()->stop;
  const bool at_header = !interpreted.function && view.frame == interpreted.root &&
                         vm::unit_of(vm::FrameView::code(view.frame), view.ip) == interpreted.unit;
  if (std::exchange(interpreted.begun, true) && at_header && ++interpreted.arrivals > stop.to)
    leave("the interpreter begins another iteration");
  interpreted.calls = frame_called(view);
  interpreted.at_stop = is_at_stop(view);
  if (interpreted.at_stop && !stop.raised) {
    take_operand(view);
    visit(view, false);
  }
  return vm::HookResult::kContinue;
}

void on_event(vm::ThreadView& view, const vm::EventInfo& info) {
  switch (info.event) {
    case vm::Event::kUnwind:
      if (interpreted.at_stop && control()->stop.raised && info.frame == view.frame) visit(view, true);
      interpreted.at_stop = false;
      if (PyObject* type = PyErr_Occurred()) {
        PyCodeObject* code = vm::FrameView::code(view.frame);
        interpreted.raised =
            std::string(reinterpret_cast<PyTypeObject*>(type)->tp_name) + " in " + PyUnicode_AsUTF8(code->co_qualname);
      }
      break;
    case vm::Event::kFrameReturned:
    case vm::Event::kFrameUnwound:
      if (info.frame == interpreted.root) leave("the interpreter leaves the function");
      break;
    case vm::Event::kActivationEnd:
      leave("the interpreter leaves the function");
    case vm::Event::kNestedEntry: {
      Control& c = *control();
      if (interpreted.calls != 0 && vm::FrameView::code(info.frame) == c.stop.place[interpreted.calls].code)
        c.inside = c.inside || (interpreted.arrivals >= c.stop.from && interpreted.arrivals <= c.stop.to);
      break;
    }
    case vm::Event::kHandover:
      come(Came::kSkipped, "a frame is handed to CPython's evaluator");
    default:
      break;
  }
}

vm::Hooks hooks;

// ---- the verdict

[[noreturn]] void decide(Verdict verdict, const std::string& why = "") {
  Control& c = *control();
  if (verdict == Verdict::kSkipped) keep(c.why, why);
  c.verdict = verdict;
  _exit(0);
}

// Has a process ended that its parent has not looked after yet?
bool has_ended(pid_t process) {
  if (process == 0) return false;
  char path[64], line[512] = {};
  std::snprintf(path, sizeof path, "/proc/%d/stat", process);
  std::FILE* file = std::fopen(path, "r");
  if (file == nullptr) return true;
  const size_t length = std::fread(line, 1, sizeof line - 1, file);
  std::fclose(file);
  const char* state = static_cast<const char*>(memrchr(line, ')', length));
  return state != nullptr && state[1] != 0 && state[2] == 'Z';
}

// Waits until an interpreted process has come to something.
void wait_for_come(pid_t process) {
  Control& c = *control();
  for (int tenths = 0; tenths < kPatience * 10 - 50; tenths++) {
    timespec until{};
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 100'000'000;
    if (until.tv_nsec >= 1'000'000'000) until.tv_sec++, until.tv_nsec -= 1'000'000'000;
    if (sem_timedwait(&c.come, &until) == 0) return;
    if (has_ended(process)) decide(Verdict::kSkipped, "the interpreted run has died");
  }
  decide(Verdict::kSkipped, "the interpreted run takes too long");
}

PyObject* read_description() {
  PyObject* entries = PyMarshal_ReadObjectFromString(description(), static_cast<Py_ssize_t>(control()->size));
  if (entries == nullptr) decide(Verdict::kSkipped, "a description cannot be read: " + take_error());
  return entries;
}

// The type's name for compare.py: a str, or None.
PyObject* coarsest() {
  const char* name = control()->coarsest;
  return name != nullptr ? PyUnicode_FromString(name) : Py_NewRef(Py_None);
}

// The interpreted run's description that `mine` differs least from; null where it never came to the place.
PyObject* best_of_visits(PyObject* mine, int* visit) {
  Control& c = *control();
  PyObject* best = nullptr;
  long fewest = 0;
  const Object type(coarsest());
  for (;;) {
    wait_for_come(c.interpreted);
    if (c.came == Came::kSkipped) decide(Verdict::kSkipped, c.why);
    if (c.came == Came::kOver) return best;
    PyObject* theirs = read_description();
    const Object number(PyObject_CallFunctionObjArgs(functions.count, theirs, mine, type.get(), nullptr));
    if (!number) decide(Verdict::kSkipped, "comparing failed: " + take_error());
    const long different = PyLong_AsLong(number.get());
    if (best == nullptr || different < fewest) best = theirs, fewest = different, *visit = c.visits;
    if (different == 0) return best;
    sem_post(&c.next);
  }
}

// What a second interpreted run has there; null where it does not come there.
PyObject* second_description(int visit) {
  Control& c = *control();
  sem_post(&c.told[1]);
  for (;;) {
    wait_for_come(0);
    if (c.came != Came::kDescribed) return nullptr;
    if (c.visits == visit) return read_description();
    sem_post(&c.next);
  }
}

}  // namespace

Place checked_place(const std::vector<LiveFrame>& frames) {
  Place place = place_of(frames);
  for (Position& position : place)
    if (position.continuation == vm::Continuation::kReplace) position.continuation = vm::Continuation::kPush;
  return place;
}

Control* control() {
  static Control* const memory = [] {
    void* at = mmap(nullptr, sizeof(Control) + kRegion, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? nullptr : new (at) Control;
  }();
  return memory;
}

char* description() { return reinterpret_cast<char*>(control() + 1); }

void begin_check() {
  Control* at = control();
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t first = (sizeof(Control) + page - 1) / page * page;
  if (at->size > first) madvise(reinterpret_cast<char*>(at) + first, (at->size + page - 1) / page * page, MADV_REMOVE);
  new (at) Control;
  for (sem_t* semaphore : {&at->told[0], &at->told[1], &at->come, &at->next}) sem_init(semaphore, 1, 0);
}

bool load_python(std::string* why) {
  if (!std::exchange(tried, true)) {
    const runtime::OwnWork work;
    if (!load()) *why = "the package's part cannot be loaded: " + take_error();
  }
  if (functions.describe != nullptr) return true;
  if (why->empty()) *why = "the package's part cannot be loaded";
  return false;
}

void begin_interpreted(vm::ThreadView& view, _PyInterpreterFrame* root, int unit, bool function,
                       bridge::Bridge* bridge) {
  begin_process();
  Control& c = *control();
  wait(&c.told[0]);
  const bool second = fork() == 0;
  if (second) {
    begin_process();
    wait(&c.told[1]);
  }
  isolate(forbidden);
  interpreted = Interpreted{};
  interpreted.root = root;
  interpreted.unit = unit;
  interpreted.function = function;
  interpreted.second = second;
  hooks = vm::Hooks{};
  vm::set_hooks(&hooks);
  bridge->set_counting(false);
  {
    const runtime::OwnWork work;
    const Object prepared(PyObject_CallNoArgs(functions.prepare));
    if (!prepared || (second && PyObject_CallNoArgs(functions.disturb) == nullptr))
      come(Came::kSkipped, ("preparing failed: " + take_error()).c_str());
  }
  hooks.record = on_instruction;
  hooks.event = on_event;
  if (!vm::start_recording(view)) come(Came::kSkipped, "a recording is under way");
}

void judge(vm::ThreadView& view, _PyInterpreterFrame* root, bool raised) {
  begin_process();
  isolate(nullptr);
  vm::set_hooks(nullptr);
  const Object exception(raised ? take_exception() : nullptr);
  const Object prepared(PyObject_CallNoArgs(functions.prepare));
  const Object mine(prepared ? described(view, root, exception.get()) : nullptr);
  if (!mine) decide(Verdict::kSkipped, "describing failed: " + take_error());
  Control& c = *control();
  int visit = 0;
  PyObject* theirs = best_of_visits(mine.get(), &visit);
  if (theirs == nullptr) {
    // A recording enters functions that the evaluator leaves to C: operators' methods (`//`, reflected ones), a partial's, __torch_function__. The
    // interpreted run has no hook in there, but it has entered the function at the same place.
    if (c.inside) decide(Verdict::kSkipped, "inside of a function that the interpreter calls from C");
    keep(c.text, std::string("  the interpreter's run does not come there: ") + c.why);
    decide(Verdict::kDifferent);
  }
  const Object type(coarsest());
  const Object same(PyObject_CallFunctionObjArgs(functions.count, theirs, mine.get(), type.get(), nullptr));
  if (same && PyLong_AsLong(same.get()) == 0) decide(Verdict::kSame);
  PyObject* again = second_description(visit);
  const Object found(
      PyObject_CallFunctionObjArgs(functions.report, theirs, mine.get(), again != nullptr ? again : Py_None, type.get(), nullptr));
  if (!found) decide(Verdict::kSkipped, "comparing failed: " + take_error());
  c.undetermined = PyLong_AsSize_t(PyTuple_GET_ITEM(found.get(), 2));
  if (PyTuple_GET_ITEM(found.get(), 0) == Py_None) decide(Verdict::kUndetermined);
  const auto text_of = [&](Py_ssize_t item) {
    const char* text = PyUnicode_AsUTF8(PyTuple_GET_ITEM(found.get(), item));
    return std::string(text != nullptr ? text : "?");
  };
  keep(c.text, text_of(0));
  keep(c.first, text_of(1));
  decide(Verdict::kDifferent);
}

}  // namespace dynvm::tracer::check
