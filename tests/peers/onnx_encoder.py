"""The yardstick of `gnnxml bench encoder`: a BERT encoder in onnxruntime, on the weights and the very tokens we use.

  pip install onnx onnxruntime safetensors numpy
  python onnx_encoder.py MODEL_DIR TOKENS --precision f32|int8 --threads N [--repeat 3] [--vectors OUT.npy]
  python onnx_encoder.py MODEL_DIR --precision f32|int8 --write OUT.onnx    # only the file, for onnxruntime-web

TOKENS has one JSON array of token numbers a line. The graph is written here from model.safetensors with onnxruntime's
own fused operators (the form it runs fastest), quantised by its own dynamic quantiser for int8. Sentences are sorted by
length and batched. Prints one JSON object: real tokens, median wall and CPU seconds of a pass.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

FUSED = "com.microsoft"


class Graph:
    """Collects nodes and constants."""

    def __init__(self, tensors):
        self.tensors = tensors
        self.nodes = []
        self.constants = []

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array, dtype=np.float32), name))
        return name

    def weight(self, name, transpose=False):
        array = self.tensors[name]
        return self.constant(name, array.T if transpose else array)

    def node(self, kind, inputs, output, domain=FUSED, **attributes):
        outputs = output if isinstance(output, list) else [output]
        self.nodes.append(helper.make_node(kind, inputs, outputs, domain=domain, **attributes))
        return outputs[0]


def build(directory):
    with open(os.path.join(directory, "config.json")) as file:
        config = json.load(file)
    raw = load_file(os.path.join(directory, "model.safetensors"))
    graph = Graph({name.removeprefix("bert."): array for name, array in raw.items()})
    epsilon = config.get("layer_norm_eps", 1e-12)
    embedding = [graph.weight(f"embeddings.{kind}_embeddings.weight") for kind in ("word", "position", "token_type")]
    norm = [graph.weight(f"embeddings.LayerNorm.{part}") for part in ("weight", "bias")]
    x = graph.node(
        "EmbedLayerNormalization", ["ids", "types", *embedding, *norm], ["embedded", "unused"], epsilon=epsilon
    )
    for number in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{number}."
        heads = [f"{layer}attention.self.{kind}" for kind in ("query", "key", "value")]
        weights = graph.constant(layer + "qkv", np.concatenate([graph.tensors[h + ".weight"].T for h in heads], axis=1))
        biases = graph.constant(layer + "qkv_bias", np.concatenate([graph.tensors[h + ".bias"] for h in heads]))
        attended = graph.node(
            "Attention", [x, weights, biases, "mask"], layer + "attended", num_heads=config["num_attention_heads"]
        )

        def halve(source, residual, name, where):
            product = graph.node(
                "MatMul", [source, graph.weight(f"{where}.dense.weight", transpose=True)], name + "_product", domain=""
            )
            return graph.node(
                "SkipLayerNormalization",
                [
                    product,
                    residual,
                    graph.weight(f"{where}.LayerNorm.weight"),
                    graph.weight(f"{where}.LayerNorm.bias"),
                    graph.weight(f"{where}.dense.bias"),
                ],
                name,
                epsilon=epsilon,
            )

        middle = halve(attended, x, layer + "middle", layer + "attention.output")
        inner = graph.weight(f"{layer}intermediate.dense.weight", transpose=True)
        wide = graph.node("MatMul", [middle, inner], layer + "wide", domain="")
        active = graph.node("BiasGelu", [wide, graph.weight(f"{layer}intermediate.dense.bias")], layer + "active")
        x = halve(active, middle, layer + "out", layer + "output")
    graph.node("Identity", [x], "hidden", domain="")
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT32, ["batch", "length"]) for name in ("ids", "types", "mask")
    ]
    output = helper.make_tensor_value_info("hidden", TensorProto.FLOAT, ["batch", "length", config["hidden_size"]])
    model = helper.make_model(
        helper.make_graph(graph.nodes, "encoder", inputs, [output], graph.constants),
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(FUSED, 1)],
    )
    model.ir_version = 9
    return model


def write(directory, precision, folder):
    """Writes the graph into the folder and returns its path."""
    path = os.path.join(folder, "model.onnx")
    onnx.save(build(directory), path)
    if precision == "int8":
        from onnxruntime.quantization import QuantType, quantize_dynamic

        rounded = os.path.join(folder, "model.int8.onnx")
        quantize_dynamic(
            path,
            rounded,
            weight_type=QuantType.QInt8,
            per_channel=True,
            op_types_to_quantize=["MatMul", "Attention"],
            extra_options={"DefaultTensorType": TensorProto.FLOAT},
        )
        path = rounded
    return path


def session(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def batches(sentences, size):
    order = sorted(range(len(sentences)), key=lambda index: -len(sentences[index]))
    for start in range(0, len(order), size):
        part = order[start : start + size]
        longest = max(len(sentences[index]) for index in part)
        ids = np.zeros((len(part), longest), dtype=np.int32)
        mask = np.zeros_like(ids)
        for row, index in enumerate(part):
            ids[row, : len(sentences[index])] = sentences[index]
            mask[row, : len(sentences[index])] = 1
        yield part, ids, mask


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("tokens", nargs="?")
    parser.add_argument("--precision", choices=["f32", "int8"], default="f32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--vectors")
    parser.add_argument("--write")
    arguments = parser.parse_args()
    if arguments.write:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copyfile(write(arguments.model, arguments.precision, folder), arguments.write)
        return
    if not arguments.tokens:
        parser.error("TOKENS is needed, or --write")
    with open(arguments.tokens) as file:
        sentences = [json.loads(line) for line in file]
    with tempfile.TemporaryDirectory() as folder:
        runner = session(write(arguments.model, arguments.precision, folder), arguments.threads)
    prepared = list(batches(sentences, arguments.batch))
    width = runner.get_outputs()[0].shape[-1]
    vectors = np.zeros((len(sentences), width), dtype=np.float32)
    wall, cpu = [], []
    for _ in range(arguments.repeat):
        started, used = time.perf_counter(), cpu_seconds()
        for part, ids, mask in prepared:
            (hidden,) = runner.run(None, {"ids": ids, "types": np.zeros_like(ids), "mask": mask})
            vectors[part] = (hidden * mask[:, :, None]).sum(axis=1)
        wall.append(time.perf_counter() - started)
        cpu.append(cpu_seconds() - used)
    if arguments.vectors:
        np.save(arguments.vectors, vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    print(
        json.dumps(
            {
                "peer": f"onnxruntime {onnxruntime.__version__}",
                "tokens": sum(map(len, sentences)),
                "seconds": statistics.median(wall),
                "cpu_seconds": statistics.median(cpu),
            }
        )
    )


if __name__ == "__main__":
    main()
