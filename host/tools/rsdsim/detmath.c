// SPDX-License-Identifier: GPL-2.0-or-later
#include <float.h>
#include <stdint.h>
#include <string.h>

#include "detmath.h"

_Static_assert(FLT_EVAL_METHOD == 0, "doubles are computed as doubles");

#define SQRT2 (0x1.6a09e667f3bcdp+0)
/* It has 32 bits, so its product with an exponent is exact. */
#define LN2_HIGH (0x1.62e42fee00000p-1)
#define LN2_LOW (0x1.a39ef35793c76p-33)
#define LN2_INVERSE (0x1.71547652b82fep+0)

static double from_bits(uint64_t bits)
{
	double x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

double det_log(double x)
{
	uint64_t bits;
	double m, f, f2, sum;
	int e, i;

	memcpy(&bits, &x, sizeof(bits));
	e = (int)(bits >> 52) - 1023;
	m = from_bits((bits & 0xfffffffffffffu) | UINT64_C(1023) << 52);
	if (m > SQRT2) {
		m *= 0.5;
		e++;
	}
	/*
	 * log m is 2 artanh f, which is 2 (f + f^3/3 + ...), with f at most
	 * 0.172.
	 */
	f = (m - 1) / (m + 1);
	f2 = f * f;
	sum = 0;
	for (i = 23; i >= 1; i -= 2)
		sum = sum * f2 + 1.0 / i;
	return e * LN2_HIGH + (2 * f * sum + e * LN2_LOW);
}

double det_exp(double x)
{
	double r, sum = 1;
	int n, i;

	n = (int)(x * LN2_INVERSE + (x < 0 ? -0.5 : 0.5));
	r = (x - n * LN2_HIGH) - n * LN2_LOW;
	/* The sum is 1 + r (1 + r/2 (1 + r/3 ...)), with r at most 0.347. */
	for (i = 15; i >= 1; i--)
		sum = 1 + r * sum / i;
	return sum * from_bits((uint64_t)(1023 + n) << 52);
}

double det_log1p(double x)
{
	double u = 1 + x;

	/* This makes up for the rounding of x (Kahan). */
	return u == 1 ? x : det_log(u) * x / (u - 1);
}

double det_expm1(double x)
{
	double sum = 1;
	int i;

	if (x > 0.5 || x < -0.5)
		return det_exp(x) - 1;
	for (i = 17; i >= 2; i--)
		sum = 1 + x * sum / i;
	return x * sum;
}
