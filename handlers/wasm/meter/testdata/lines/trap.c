// The C guest of the test of line information: trap(n) traps n calls deep, and loops on the way.
#define EXPORT(name) __attribute__((export_name(#name)))

static volatile int sink;

__attribute__((noinline)) static int work(int n) {
  for (int i = 0; i < n; i++) sink += i;
  return sink;
}

__attribute__((noinline)) static int down(int n) {
  if (n == 0)
    __builtin_trap();
  int r = down(n - 1);
  return r + work(n);
}

EXPORT(trap) int trap(int n) {
  work(n);
  return down(n);
}
