// Reads the clocks that JavaScript knows.
let millis = 0;
let nanos = 0n;
for (let round = 0; round < 1000; round++) {
    millis = Date.now();
    const now = process.hrtime.bigint();
    if (now < nanos) throw new Error("the monotonic clock went back");
    nanos = now;
}
console.log(`realtime ${(millis / 1000).toFixed(3)}`);
console.log(`monotonic ${nanos / 1000000000n}.${String(nanos % 1000000000n).padStart(9, "0")}`);
