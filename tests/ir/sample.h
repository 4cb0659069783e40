// A trace with one of everything, used by several tests.
#pragma once

namespace dynvm::ir {

inline constexpr char kSample[] = R"ir(
trace 7 "train.py:41 \"step\"" storages 8
; entry
%0:o = slot #3
%1:o = const_obj @0 "<class 'Tensor'>"
guard_torch_state {grad autocast_cpu : f32 15 5} !snap0
guard_is %0, %1 #4 !snap0
guard_is %0, %1 #-1 !snap0
%w:t = unbox_tensor %0 !snap0 -> f32[4,8]{8,1} s0 grad param
%x:t = unbox_tensor %1 !snap0 -> bf16[8]{2} s1 offset 6 device 1 0 nonleaf inference
%lr:f = unbox_float %1 !snap0
%n:i = const_int #-3
%half:f = const_float 0.5
%minus:f = const_float -inf
%yes:b = const_bool #1
%call = aten "aten::addcmul.Tensor" (%w, undef, $%lr, $f64 %lr, #f32 1.5, #i64 -2, none, 7, 0.1, true, false, "tanh", ints[1,-2], floats[0.5,nan], bools[1,0], opaque 9, [%w, undef, %x], ?[undef]) -> (f32[4,8]{8,1} s2, undef, f32[4]{1} s0 open -9223372036854775807 alias 0) mutates [0,16] sized random stream 270336 x 4 grad inference backward moves count 3 !snap1
%r:t = result %call #0 -> f32[4,8]{8,1} s2
%noun = aten "aten::neg" (%r) -> (f32[4,8]{8,1} s3) !snap1
%neg:t = result %noun #0 -> f32[4,8]{8,1} s3
%seen:f = read_scalar %neg !snap1
%object:o = wrap %neg grad nonleaf fn "NegBackward0" nr 1 freed forward [%call, %noun] behind [%r "MulBackward0" 1] node 2 [%neg, %r] "NegBackward0" "" [%w] 3 [%call 2, %call 3] [%x] [%w] [%call, %noun]
%boxed:o = box_float %seen sunk
%late:o = build_tuple %boxed, %object, %lr sunk
set_grad %0, %object !snap1
kernel k0 (%r, %neg, %lr)
%res:o = call %0, %1, %object @1 "('alpha',)" !snap1
%res2:o = call %0 !snap1
leave !snap2
snap0: root code 1 unit 0 [=, _]
snap1: root code 1 unit 14 [%0, =, _, %lr] | %0 code 2 unit 20 then 3 with %1 [%1, %0]
snap2: elsewhere root code 1 unit 30 [%late]
kernel k0 "mul" sizes [32] pointers 8 scalars (f64) {
  o0 = f32 p2 + 0 {1}
  o1 = f32 p3 + 0 {1}
  n0 = load f32 o0
  n1 = scalar f32 s0
  n2 = mul f32 n0, n1
  store o1, n2
}
)ir";

}  // namespace dynvm::ir
