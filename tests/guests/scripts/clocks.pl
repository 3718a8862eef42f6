# Reads the clocks that perl knows.
use strict;
use warnings;
use Time::HiRes;

my $seconds = 0;
$seconds = time for 1 .. 100;
print "seconds $seconds\n";
my ($whole, $micros) = Time::HiRes::gettimeofday();
printf "micros %d.%06d\n", $whole, $micros;
printf "monotonic %.6f\n", Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC());
printf "boottime %.6f\n", Time::HiRes::clock_gettime(7);
