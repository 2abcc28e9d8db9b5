// SPDX-License-Identifier: GPL-2.0-or-later
#include "detmath.h"
#include "zipf.h"

/* Returns (e^x - 1) / x. */
static double slope_exp(double x)
{
	return x < 1e-8 && x > -1e-8 ? 1 + x / 2 : det_expm1(x) / x;
}

/* Returns log(1 + x) / x. */
static double slope_log(double x)
{
	return x < 1e-8 && x > -1e-8 ? 1 - x / 2 : det_log1p(x) / x;
}

/* Returns h(x), which is x^-theta. */
static double density(const struct zipf *z, double x)
{
	return det_exp(-z->theta * det_log(x));
}

/* Returns H(x), an integral of h: (x^(1 - theta) - 1) / (1 - theta). */
static double area(const struct zipf *z, double x)
{
	double log_x = det_log(x);

	return log_x * slope_exp((1 - z->theta) * log_x);
}

/* Returns the x for an area. */
static double area_inverse(const struct zipf *z, double a)
{
	double t = a * (1 - z->theta);

	/* Rounding may lead just below the least possible value. */
	if (t < -1 + 0x1p-52)
		t = -1 + 0x1p-52;
	return det_exp(a * slope_log(t));
}

void zipf_init(struct zipf *z, uint64_t n, double theta)
{
	z->n = n;
	z->theta = theta;
	z->area_first = area(z, 1.5) - 1;
	z->area_last = area(z, n + 0.5);
	z->accept = 2 - area_inverse(z, area(z, 2.5) - density(z, 2));
}

uint64_t zipf_next(const struct zipf *z, struct rng *rng)
{
	double a, x, k;

	do {
		a = z->area_last +
		    rng_unit(rng) * (z->area_first - z->area_last);
		x = area_inverse(z, a);
		k = (double)(uint64_t)(x + 0.5);
		if (k < 1)
			k = 1;
		else if (k > z->n)
			k = z->n;
	} while (k - x > z->accept && a < area(z, k + 0.5) - density(z, k));
	return (uint64_t)k - 1;
}

double zipf_coldest(const struct zipf *z)
{
	/*
	 * The sum of all k^-theta is about the area that ranks are drawn from.
	 */
	return (z->area_last - z->area_first) / (z->n * density(z, z->n));
}
