mod directories;
mod minilm;
mod reference_tokenizer;
