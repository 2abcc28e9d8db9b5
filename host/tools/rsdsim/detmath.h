/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * These are logarithm and exponential functions whose last digit does not
 * depend on the machine.
 *
 * C libraries differ there, and one differing digit leads to another address
 * and to another run from there on. These functions use only additions,
 * multiplications and divisions of IEEE doubles, which every machine rounds the
 * same, in a fixed order. The Makefile forbids the compiler to fuse them. They
 * are good to about 1e-15.
 */
#ifndef RSDSIM_DETMATH_H
#define RSDSIM_DETMATH_H

/* Returns the natural logarithm of a normal number above 0. */
double det_log(double x);

/* Returns e^x for -700 < x < 700. */
double det_exp(double x);

/* Returns log(1 + x) for x > -1, also near 0. */
double det_log1p(double x);

/* Returns e^x - 1, also near 0. */
double det_expm1(double x);

#endif
