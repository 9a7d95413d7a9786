"""Blocked products and inverses against the plain ones."""

import pytest
import torch

from tacit.theory.symmetric import gram, inverse, quadratic


def drawn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64)


@pytest.mark.parametrize("rows", [1, 4, 5, 10, 23])
@pytest.mark.parametrize("block", [5, 100])
class TestBlocks:
    def test_gram(self, rows, block):
        vectors = drawn(2, rows, 7)
        found = gram(vectors, block=block)
        torch.testing.assert_close(found, vectors @ vectors.mT, rtol=1e-13, atol=1e-13)

    def test_quadratic(self, rows, block):
        vectors, matrix = drawn(2, 6, rows), gram(drawn(2, rows, 7))
        expected = torch.einsum("bki,bij,bkj->bk", vectors, matrix, vectors)
        torch.testing.assert_close(quadratic(vectors, matrix, block=block), expected, rtol=1e-12, atol=1e-12)

    def test_inverse(self, rows, block):
        matrix = gram(drawn(2, rows, 3 * rows))
        found = inverse(torch.linalg.cholesky(matrix), block=block)
        torch.testing.assert_close(found @ matrix, torch.eye(rows, dtype=torch.float64).expand(2, -1, -1))
        torch.testing.assert_close(found, found.mT)
