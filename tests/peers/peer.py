"""Trains one peer on a raw-text corpus and prints its ranking quality and cost as one JSON line.

    python peer.py omikuji-bonsai|omikuji-parabel|pecos|pecos-flat --train T.jsonl[.gz] [--ids FILE] --test D.jsonl[.gz]

The peers take numbers, not text: scikit-learn makes TF-IDF for them (sublinear, unigrams, English stop words, terms of
at least two documents), timed apart as `features_cpu`. Labels that training never saw are left out of the truth.

`pecos-flat` is one-vs-all without any tree, what a partition is measured against. With `--program GNNXML` the vectors of each
text's beginning (`gnnxml encoder encode`, a transformer's, cached; their making is not timed) stand beside its words, a tenth of
the score comes from the most similar training documents, and the score gets the prior (1/propensity)^0.2."""

import argparse
import gzip
import json
import math
import os
import subprocess
import tempfile
import time

import numpy
import scipy.sparse
from sklearn.feature_extraction.text import TfidfVectorizer


def documents(path, ids=None):
    wanted = None
    if ids:
        with open(ids, encoding="utf-8") as lines:
            wanted = {line.strip() for line in lines}
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines if line.strip()]
    return [d for d in found if d["labels"] and (wanted is None or d["id"] in wanted)]


def incidence(corpus, number):
    pairs = [(i, number[l]) for i, d in enumerate(corpus) for l in sorted(set(d["labels"])) if l in number]
    rows, columns = zip(*pairs)
    return scipy.sparse.csr_matrix(
        (numpy.ones(len(pairs), numpy.float32), (rows, columns)), shape=(len(corpus), len(number))
    )


def propensity_weights(train):
    """1/p of each label, from how many training documents carry it."""
    counts = numpy.asarray(train.sum(axis=0), dtype=float).ravel()
    return 1 + (math.log(train.shape[0]) - 1) * 2.5**0.55 * (counts + 1.5) ** -0.55


def figures(rankings, truth, train):
    """Precision, nDCG and propensity-scored precision, the last as a ratio of sums."""
    weight = propensity_weights(train)
    discount = [1 / math.log2(place + 2) for place in range(5)]
    totals = dict.fromkeys([f"{m}@{k}" for m in ("P", "nDCG", "RP", "PSP") for k in (1, 3, 5)], 0.0)
    best = dict.fromkeys((1, 3, 5), 0.0)
    used = 0
    for ranking, row in zip(rankings, truth):
        right = set(row.indices.tolist())
        if not right:
            continue
        used += 1
        gains = sorted((weight[l] for l in right), reverse=True)
        for k in (1, 3, 5):
            hits = [(place, l) for place, l in enumerate(ranking[:k]) if l in right]
            totals[f"P@{k}"] += len(hits) / k
            totals[f"nDCG@{k}"] += sum(discount[p] for p, _ in hits) / sum(discount[: min(k, len(right))])
            totals[f"RP@{k}"] += len(hits) / min(k, len(right))
            totals[f"PSP@{k}"] += sum(weight[l] for _, l in hits)
            best[k] += sum(gains[:k])
    for name in totals:
        k = int(name.split("@")[1])
        totals[name] = round(100 * totals[name] / (best[k] if name.startswith("PSP") else used), 2)
    return totals | {"documents": used}


def megabytes(folder):
    return sum(os.path.getsize(os.path.join(r, f)) for r, _, files in os.walk(folder) for f in files) / 1e6


def omikuji_model(bonsai, features, labels, test, folder):
    import omikuji

    lines = os.path.join(folder, "train.txt")
    with open(lines, "w", encoding="utf-8") as out:
        out.write(f"{features.shape[0]} {features.shape[1]} {labels.shape[1]}\n")
        for i in range(features.shape[0]):
            row = features[i]
            words = " ".join(f"{c}:{v:.5f}" for c, v in zip(row.indices, row.data)) or "0:0.00001"
            out.write(",".join(map(str, labels[i].indices)) + " " + words + "\n")
    settings = omikuji.Model.default_hyper_param()
    settings.n_trees = 3
    if bonsai:
        settings.cluster_balanced, settings.cluster_k, settings.max_depth = False, 100, 3
    cpu = time.process_time()
    model = omikuji.Model.train_on_data(lines, settings)
    cpu = time.process_time() - cpu
    model.save(os.path.join(folder, "model"))
    predict = time.process_time()
    rankings = []
    for i in range(test.shape[0]):
        row = list(zip(test[i].indices.tolist(), test[i].data.tolist()))
        rankings.append([label for label, _ in model.predict(row, top_k=5)])
    return rankings, cpu, time.process_time() - predict


def pecos_model(features, labels, test, folder):
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    cpu = time.process_time()
    tree = Indexer.gen(
        LabelEmbeddingFactory.create(labels, features, method="pifa"), indexer_type="hierarchicalkmeans"
    )
    model = XLinearModel.train(features, labels, C=tree)
    cpu = time.process_time() - cpu
    model.save(os.path.join(folder, "model"))
    predict = time.process_time()
    scored = model.predict(test, only_topk=5, beam_size=20)
    predict = time.process_time() - predict
    return [row.indices[numpy.argsort(-row.data)].tolist() for row in scored], cpu, predict


def similar_documents(features, labels, test, count=50):
    """For each text the labels of its nearest training documents, as shares of the similarity."""
    rows = []
    for start in range(0, test.shape[0], 500):
        similar = (test[start : start + 500] @ features.T).tocsr()
        for row in similar:
            nearest = numpy.argsort(-row.data)[:count]
            share = row.data[nearest] / max(row.data[nearest].sum(), 1e-9)
            weights = scipy.sparse.csr_matrix(
                (share, row.indices[nearest], [0, len(nearest)]), shape=(1, labels.shape[0])
            )
            rows.append(weights @ labels)
    return scipy.sparse.vstack(rows, format="csr")


def flat_model(features, labels, test, folder, gamma, neighbours):
    """One-vs-all over all labels and documents; `gamma` prefers the rarer of two labels that are equally sure, `neighbours` is
    the share of the score that similar documents have."""
    from pecos.xmc.xlinear.model import XLinearModel

    cpu = time.process_time()
    model = XLinearModel.train(features, labels, C=None)
    cpu = time.process_time() - cpu
    model.save(os.path.join(folder, "model"))
    prior = propensity_weights(labels) ** gamma
    predict = time.process_time()
    scored = model.predict(test, only_topk=50, post_processor="l3-hinge").tocsr()
    if neighbours > 0:
        scored = (1 - neighbours) * scored + neighbours * similar_documents(features, labels, test)
    rankings = [row.indices[numpy.argsort(-(row.data * prior[row.indices]))][:5].tolist() for row in scored]
    return rankings, cpu, time.process_time() - predict


def beginnings(program, corpus):
    """The mean vector of the first three pieces of 45 words of each document, of length 1."""
    pieces, owners = [], []
    for number, document in enumerate(corpus):
        words = document["text"].split()[:135]
        for start in range(0, max(len(words), 1), 45):
            pieces.append(" ".join(words[start : start + 45]) or "-")
            owners.append(number)
    lines = subprocess.run(
        [program, "encoder", "encode"], input="\n".join(pieces), stdout=subprocess.PIPE, text=True, check=True
    ).stdout.splitlines()
    vectors = numpy.array([json.loads(line) for line in lines], numpy.float32)
    sums = numpy.zeros((len(corpus), vectors.shape[1]), numpy.float32)
    numpy.add.at(sums, owners, vectors)
    return scipy.sparse.csr_matrix(sums / numpy.maximum(numpy.linalg.norm(sums, axis=1, keepdims=True), 1e-9))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", choices=["omikuji-bonsai", "omikuji-parabel", "pecos", "pecos-flat"])
    parser.add_argument("--train", required=True)
    parser.add_argument("--ids")
    parser.add_argument("--test", required=True)
    parser.add_argument("--program", help="gnnxml, for the vectors of pecos-flat")
    args = parser.parse_args()
    train, test = documents(args.train, args.ids), documents(args.test)
    features_cpu = time.process_time()
    words = TfidfVectorizer(
        sublinear_tf=True, min_df=2, max_features=200_000, stop_words="english", dtype=numpy.float32
    )
    features = words.fit_transform(d["text"] for d in train)
    features_cpu = time.process_time() - features_cpu
    unseen = words.transform(d["text"] for d in test)
    if args.program:
        features = scipy.sparse.hstack([features, beginnings(args.program, train)], format="csr", dtype=numpy.float32)
        unseen = scipy.sparse.hstack([unseen, beginnings(args.program, test)], format="csr", dtype=numpy.float32)
    features.sort_indices()
    unseen.sort_indices()
    number = {name: i for i, name in enumerate(sorted({l for d in train for l in d["labels"]}))}
    labels, truth = incidence(train, number), incidence(test, number)
    with tempfile.TemporaryDirectory() as folder:
        if args.peer == "pecos":
            rankings, cpu, predict = pecos_model(features, labels, unseen, folder)
        elif args.peer == "pecos-flat":
            gamma, neighbours = (0.2, 0.1) if args.program else (0.0, 0.0)
            rankings, cpu, predict = flat_model(features, labels, unseen, folder, gamma, neighbours)
        else:
            rankings, cpu, predict = omikuji_model(args.peer == "omikuji-bonsai", features, labels, unseen, folder)
        size = megabytes(os.path.join(folder, "model"))
    print(
        json.dumps(
            figures(rankings, truth, labels)
            | {
                "name": args.peer,
                "features_cpu": round(features_cpu, 1),
                "train_cpu": round(cpu, 1),
                "predict_ms": round(1000 * predict / len(test), 2),
                "megabytes": round(size, 1),
            }
        )
    )


if __name__ == "__main__":
    main()
