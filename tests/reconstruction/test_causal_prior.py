"""A language model as the prior of texts, against enumeration: a small one with random weights and few words.

Seeds are fixed; each tolerance says how often other seeds would fail.
"""

import itertools
import math
import re

import numpy as np
import pytest
import torch
from short_texts import encode, posterior

from tacit import InputError
from tacit.reconstruction import CausalPrior, Gaussian, bound_texts_files, text_attack, text_bounds
from tacit.reconstruction.causal_prior import _LOG_ERROR
from tacit.reconstruction.chains import NoiseDensity
from tacit.reconstruction.text_chains import Embeddings, stepped

SIGMA = 2.0
WORDS = "abcd"
ENCODER = """
import numpy as np

TABLE = np.random.default_rng(5).normal(size=(3, 26, 4))


def encoder():
    return lambda texts: np.array(
        [sum(TABLE[place, ord(word) - 97] for place, word in enumerate(text.split())) for text in texts]
    )
"""


def tokenizer_of(model):
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_object=model, eos_token="<end>", unk_token="<unknown>")  # noqa: S106


def language_model(size):
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(3)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=size, n_positions=8, n_embd=8, n_layer=1, n_head=2))
    for value in model.parameters():
        value.data *= 5  # so that what follows depends on what precedes
    return model


@pytest.fixture(scope="module")
def tokenizer():
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    numbers = {"<end>": 0, "<unknown>": 1, **{word: 2 + place for place, word in enumerate(WORDS)}}
    known = Tokenizer(models.WordLevel(numbers, unk_token="<unknown>"))  # noqa: S106
    known.pre_tokenizer = pre_tokenizers.Whitespace()
    known.decoder = decoders.WordPiece(prefix="##", cleanup=False)  # a space between words
    return tokenizer_of(known)


@pytest.fixture(scope="module")
def prior(tokenizer):
    return CausalPrior(language_model(8), tokenizer, longest=3, description="a model with random weights")


@pytest.fixture(scope="module")
def all_texts(prior):
    """Every text that the prior can draw, and its probability."""
    words = range(2, 2 + len(WORDS))
    found = [sentence for length in (1, 2, 3) for sentence in itertools.product(words, repeat=length)]
    return {sentence: math.exp(prior.log_probability(sentence)) for sentence in found}


def test_it_is_a_law_and_draws_from_it(prior, all_texts):
    assert math.fsum(all_texts.values()) == pytest.approx(1, abs=1e-12)
    assert max(all_texts.values()) > 5 * min(all_texts.values())  # it says something
    count = 2_500
    drawn = prior.sample(count, seed=1)
    for sentence, chance in all_texts.items():
        # Five standard errors for each of 84 texts: a false alarm in about 15 000 runs.
        assert abs(drawn.count(sentence) / count - chance) < 5 * math.sqrt(chance / count) + 1 / count


def test_a_step_is_reversible(prior, all_texts):
    """The largest imbalance between moves and their reverses, in standard errors, from draws of the posterior."""
    release, count = np.array([2.0, -1.0, 1.0, 2.0]), 4_000
    of_length, weights = posterior(prior, all_texts, release, 2)
    log = NoiseDensity.of(Gaussian(SIGMA)).log

    def weigh(missing):
        return log(torch.as_tensor(missing.reshape(-1, 4))).numpy().reshape(missing.shape[:-1])

    for place, favour in ((0, None), (1, None), (0, np.array([1.0, 1.0, 0.1, 1.0, 20.0, 1.0, 1.0, 1.0]))):
        source = np.random.default_rng(2)
        starts = [of_length[row] for row in source.choice(len(of_length), size=count, p=weights)]
        options = {"source": source, "favour": favour if favour is None else np.tile(favour, (count, 1))}
        tried = stepped(
            Embeddings(encode, prior), starts, np.tile(release, (count, 1)), weigh, place, candidates=2, **options
        )
        moves = {}
        for start, (end, *_) in zip(starts, tried, strict=True):
            moves[start, end] = moves.get((start, end), 0) + 1
        both = [(there, moves.get((end, start), 0)) for (start, end), there in moves.items() if start != end]
        # 24 pairs each: five standard errors happen by chance in one of 25 000 runs.
        assert max(abs(there - back) / math.sqrt(there + back) for there, back in both) < 5
        assert sum(there for there, _ in both) > count / 10


def test_bounds_hold_and_an_attack_does_not_contradict_them(prior, all_texts):
    bounds = text_bounds(encode, prior, Gaussian(SIGMA), texts=200, sweeps=2, rivals=15, seed=4)
    source, values = np.random.default_rng(3), []
    for sentence in prior.sample(400, seed=9):
        release = encode([prior.text(sentence)])[0] + SIGMA * source.normal(size=4)
        texts, weights = posterior(prior, all_texts, release, len(sentence))
        values.append(np.mean([max(weights[row == word].sum() for word in set(row)) for row in np.array(texts).T]))
    truth, error = np.mean(values), np.std(values) / math.sqrt(len(values))
    # The claim fails with probability 0.001, and the simulated truth is five standard errors too high in 3e-7.
    assert truth - 5 * error < bounds.words < 1.45 * truth
    assert "a model with random weights" in bounds.guarantee.adversary.scope
    attack = text_attack(encode, prior, Gaussian(SIGMA), texts=100, pool=200, sweeps=4, seed=6)
    assert attack.words.low <= bounds.words
    assert attack.guessing < attack.words.value


def test_a_probability_does_not_depend_on_what_is_read_with_it(prior, tokenizer, all_texts):
    for sentence in list(all_texts)[::28]:
        alone = CausalPrior(language_model(8), tokenizer, longest=3, description="the same")
        assert abs(alone.log_probability(sentence) - prior.log_probability(sentence)) < _LOG_ERROR / 100


def test_tokens_that_a_tokenizer_would_not_make_do_not_count():
    from tokenizers import Tokenizer, models

    merged = Tokenizer(models.BPE({"<end>": 0, "<unknown>": 1, "a": 2, "b": 3, "ab": 4}, [("a", "b")]))
    prior = CausalPrior(language_model(5), tokenizer_of(merged), longest=2, description="a model of pieces")
    assert prior.log_probability((2, 3)) == -math.inf  # together they are the piece ab
    drawn = prior.sample(500, seed=0)
    assert (2, 3) not in drawn
    assert (4,) in drawn
    assert prior.numbers("ab") == (4,)
    assert re.search(r"splits one into the same tokens, as it does with \d+ of 64 draws", prior.description)
    source = np.random.default_rng(0)
    [(words, excess)] = prior.proposed([(2, 2)], 1, 50, source, None)
    assert np.isinf(excess[1:][np.array(words) == 3]).all()
    assert np.isfinite(excess[1:][np.array(words) != 3]).all()


def test_a_tokenizer_that_splits_at_random_is_made_to_split_alike():
    from tokenizers import Tokenizer, models

    random = Tokenizer(models.BPE({"<end>": 0, "<unknown>": 1, "a": 2, "b": 3, "ab": 4}, [("a", "b")], dropout=0.5))
    prior = CausalPrior(language_model(5), tokenizer_of(random), longest=2, description="a model of pieces")
    assert {prior.numbers("ab") for _ in range(20)} == {(4,)}


def test_a_model_that_reads_otherwise_than_it_draws_is_refused(tokenizer):
    from transformers import RobertaConfig, RobertaForCausalLM

    torch.manual_seed(0)
    sizes = {"vocab_size": 8, "hidden_size": 8, "intermediate_size": 16, "max_position_embeddings": 12}
    both_ways = RobertaForCausalLM(RobertaConfig(**sizes, num_hidden_layers=1, num_attention_heads=2))
    with pytest.raises(InputError, match="log-probabilities of a text, read as a whole and token by token"):
        CausalPrior(both_ways, tokenizer, longest=3, description="a model that looks ahead")


def test_nobody_changes_the_model_afterwards(tokenizer, prior):
    model = language_model(8)
    kept = CausalPrior(model, tokenizer, longest=3, description="a model")
    for value in model.parameters():
        value.data.zero_()
    sentence = prior.sample(1, seed=0)[0]
    assert kept.log_probability(sentence) == prior.log_probability(sentence)


def test_a_tokenizer_of_another_model_is_refused(tokenizer):
    with pytest.raises(InputError, match="no token beyond the 4 of the model"):
        CausalPrior(language_model(4), tokenizer, longest=3, description="a small model")


def test_texts_become_tokens_and_texts_again(prior):
    assert prior.text(prior.numbers("a b")) == "a b"
    assert prior.numbers("a b c d") == prior.numbers("a b c")
    assert prior.cuts("a b c d")
    assert not prior.cuts("a b c")
    assert prior.numbers("a x") is None
    assert prior.numbers("a  b") is None  # the tokens spell another text
    assert prior.numbers("") is None


def test_a_folder_is_read_and_nothing_else(prior, tokenizer, tmp_path):
    language_model(8).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    found = CausalPrior.loaded(tmp_path / "model", longest=3, device="cpu")
    assert "the language model model" in found.description
    sentence = prior.sample(1, seed=0)[0]
    assert found.log_probability(sentence) == pytest.approx(prior.log_probability(sentence), abs=1e-6)
    # The same from files, in one line, with real texts that have one more word than the prior knows.
    (tmp_path / "encoder.py").write_text(ENCODER)
    for name, lines in {"own": ["a b c", "b d", "c x", "d d"], "other": ["a", "b c"]}.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(lines))
    options = {"longest": 3, "draws": 40, "limit": 30, "progress": False}
    page = bound_texts_files(
        f"{tmp_path / 'encoder.py'}:encoder",
        text=tmp_path / "own.txt",
        public=tmp_path / "other.txt",
        noise="gaussian:2",
        prior=f"language-model:{tmp_path / 'model'}",
        **options,
    )
    assert page.detail["of_known_words"] == 3
    assert any("3 of 4 real texts can be made of the model's tokens" in line for line in page.summary)
    assert "the language model model" in page.detail["prior"]
    with pytest.raises(InputError, match="must be trigrams, language-model:FOLDER or auto"):
        bound_texts_files(
            f"{tmp_path / 'encoder.py'}:encoder",
            text=tmp_path / "own.txt",
            public=tmp_path / "other.txt",
            noise="gaussian:2",
            prior="gaussian",
        )
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="must be a folder with a causal language model"):
        CausalPrior.loaded(tmp_path / "empty")
    with pytest.raises(InputError, match="no such"):
        CausalPrior.loaded(tmp_path / "nowhere")
    # Weights that would have to be unpickled are refused.
    torch.save(language_model(8).state_dict(), tmp_path / "model" / "pytorch_model.bin")
    (tmp_path / "model" / "model.safetensors").unlink()
    with pytest.raises(InputError, match="safetensors"):
        CausalPrior.loaded(tmp_path / "model")
