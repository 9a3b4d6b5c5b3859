use std::sync::atomic::AtomicBool;

use gnnxml_shared::api::TrainEvent;

use super::*;
use crate::collective::{Buffer, Collective, CollectiveError};
use crate::matcher::{
    MatcherError, Precision, TrainData, TrainOptions, TrainedMatcher, ValidationData, checkpoint,
    match_quality, train, train_with,
};

struct Fixture {
    directory: tempfile::TempDir,
    config: MatcherConfig,
    graphs: PreparedGraphs,
    positives: Lists,
    labels: Lists,
}

impl Fixture {
    fn new(config: MatcherConfig, documents: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (graphs, positives, labels) = corpus(&config, &directory.path().join("graphs"), documents, 3);
        Self {
            directory,
            config,
            graphs,
            positives,
            labels,
        }
    }

    fn data(&self) -> TrainData<'_> {
        TrainData {
            graphs: &self.graphs,
            positives: &self.positives,
            label_documents: &self.labels,
            validation: Some(ValidationData {
                graphs: &self.graphs,
                positives: &self.positives,
            }),
        }
    }

    fn options(&self) -> TrainOptions {
        TrainOptions {
            epochs: 3,
            batch: 8,
            shard: 3,
            top: 1,
            seed: 7,
            corpus: "fixture".to_owned(),
            ..TrainOptions::new(self.config.clone())
        }
    }

    fn train(&self, options: &TrainOptions) -> Result<TrainedMatcher, MatcherError> {
        train(self.data(), options, &mut |_| {})
    }
}

#[test]
fn training_finds_the_clusters_and_tells_each_epoch() {
    let fixture = Fixture::new(
        MatcherConfig {
            hidden: 16,
            dropout: 0.1,
            ..config()
        },
        160,
    );
    let mut epochs = Vec::new();
    let options = TrainOptions {
        epochs: 12,
        ..fixture.options()
    };
    let trained = train(fixture.data(), &options, &mut |event| {
        if let TrainEvent::Epoch {
            epoch,
            validation_loss,
            alpha,
            ..
        } = event
        {
            epochs.push((epoch, validation_loss.unwrap(), alpha));
        }
    })
    .unwrap();
    assert_eq!(epochs.len(), 12);
    assert!(
        (epochs[5].2 - 0.75).abs() < 1e-6,
        "half-way α = 1 − ¼, found {}",
        epochs[5].2
    );
    assert!(epochs[11].1 < epochs[0].1);
    let quality = match_quality(&trained.matcher, &fixture.graphs, &fixture.positives, 1).unwrap();
    assert!(quality.cluster_recall > 0.95, "{quality:?}");
    assert_eq!(
        Some(quality.cluster_recall),
        trained.cluster_recall,
        "the best epoch's weights are returned"
    );
}

#[test]
fn the_thread_count_does_not_show() {
    let fixture = Fixture::new(config(), 40);
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| fixture.train(&fixture.options()).unwrap().matcher.tensors())
    };
    assert!(run(1) == run(3));
}

#[test]
fn an_interrupted_and_resumed_run_is_bit_for_bit_the_uninterrupted_one() {
    let fixture = Fixture::new(config(), 50);
    for (name, options) in [
        ("alone", fixture.options()),
        ("beside", fixture.options().beside_linear()),
    ] {
        let whole = fixture.train(&options).unwrap();
        // The flag is looked at after every step: raised beforehand, a sitting is one step, in the middle of an epoch or at its end.
        for sitting in 0..12 {
            let options = TrainOptions {
                checkpoints: Some(fixture.directory.path().join(name)),
                resume: true,
                stop: std::sync::Arc::new(AtomicBool::new(sitting < 11)),
                ..options.clone()
            };
            let trained = fixture.train(&options).unwrap();
            assert_eq!(trained.interrupted, sitting < 11);
            if !trained.interrupted {
                assert!(trained.matcher.tensors() == whole.matcher.tensors());
                assert_eq!(trained.validation_loss, whole.validation_loss);
            }
        }
    }
}

#[test]
fn single_and_double_precision_on_candles_path_run_the_same_loop() {
    let fixture = Fixture::new(config(), 30);
    let run = |precision, composed| {
        let options = TrainOptions {
            precision,
            composed,
            ..fixture.options()
        };
        fixture.train(&options).unwrap().validation_loss.unwrap()
    };
    let fused = run(Precision::F32, false);
    let single = run(Precision::F32, true);
    let double = run(Precision::F64, true);
    assert!((single - double).abs() < 1e-3 * double, "{single} {double}");
    assert!((fused - double).abs() < 1e-3 * double, "{fused} {double}");
}

#[test]
fn a_loss_that_is_not_a_number_stops_the_run_and_names_the_last_good_checkpoint() {
    let fixture = Fixture::new(config(), 30);
    let checkpoints = Some(fixture.directory.path().join("checkpoints"));
    let good = TrainOptions {
        epochs: 1,
        checkpoints: checkpoints.clone(),
        ..fixture.options()
    };
    fixture.train(&good).unwrap();
    let bad = TrainOptions {
        learning_rate: 1e38,
        clip: f32::INFINITY,
        checkpoints,
        ..fixture.options()
    };
    match fixture.train(&bad) {
        Err(MatcherError::NotFinite {
            last_good: Some(path),
            ..
        }) => assert!(path.exists()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_without_gain_stops_when_its_patience_ends() {
    let fixture = Fixture::new(config(), 30);
    // The rate is so small that f32 weights cannot move: no epoch is better than the first.
    let options = TrainOptions {
        epochs: 20,
        patience: 2,
        learning_rate: 1e-30,
        ..fixture.options()
    };
    let trained = fixture.train(&options).unwrap();
    assert_eq!((trained.epochs, trained.best_epoch), (3, 1));
}

#[test]
fn checkpoints_that_do_not_fit_are_refused_with_the_reason() {
    let fixture = Fixture::new(config(), 20);
    let directory = fixture.directory.path().join("checkpoints");
    let options = TrainOptions {
        epochs: 1,
        checkpoints: Some(directory.clone()),
        resume: true,
        ..fixture.options()
    };
    fixture.train(&options).unwrap();
    let reason = |options: &TrainOptions| fixture.train(options).unwrap_err().to_string();

    let other = TrainOptions {
        corpus: "another".to_owned(),
        ..options.clone()
    };
    assert!(reason(&other).contains("another corpus"), "{}", reason(&other));
    let wider = MatcherConfig {
        hidden: 9,
        ..fixture.config.clone()
    };
    let other = TrainOptions {
        model: wider,
        ..options.clone()
    };
    assert!(reason(&other).contains("another shape"), "{}", reason(&other));

    let file = checkpoint::last(&directory);
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() - 10]).unwrap();
    assert!(reason(&options).contains("truncated"), "{}", reason(&options));
    let mut flipped = bytes.clone();
    *flipped.last_mut().unwrap() ^= 1;
    std::fs::write(&file, &flipped).unwrap();
    assert!(reason(&options).contains("checksum"), "{}", reason(&options));
    let text = String::from_utf8_lossy(&bytes).into_owned();
    assert!(text.contains(r#""version":"2""#));
    let mut older = bytes.clone();
    let at = bytes.windows(13).position(|w| w == br#""version":"2""#).unwrap();
    older[at + 11] = b'1';
    std::fs::write(&file, &older).unwrap();
    assert!(
        reason(&options).contains("another version"),
        "{}",
        reason(&options)
    );
}

#[test]
fn prepared_graphs_come_back_as_they_were_written_and_damage_is_noticed() {
    let config = config();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("graphs");
    let mut writer = PreparedWriter::create(&path, config.width).unwrap();
    let inputs: Vec<_> = (0..5).map(|n| graph(&config, n, n as u64)).collect();
    for input in &inputs {
        writer.push(input).unwrap();
    }
    assert!(!path.exists(), "the file appears when it is whole");
    let graphs = writer.finish().unwrap();
    for (document, input) in inputs.iter().enumerate() {
        let read = graphs.get(document);
        assert_eq!(
            (&read.offsets, &read.neighbours, &read.words),
            (&input.offsets, &input.neighbours, &input.words)
        );
        assert_eq!(
            (&read.shared, &read.keywords, &read.origin),
            (&input.shared, &input.keywords, &input.origin)
        );
        assert!(
            read.features
                .iter()
                .zip(input.features.iter())
                .all(|(a, b)| (a - b).abs() < 1e-3)
        );
    }
    let bytes = std::fs::read(&path).unwrap();
    for (change, complaint) in [
        (bytes[..bytes.len() - 8].to_vec(), "truncated"),
        ([b"GNXGRAF9", &bytes[8..]].concat(), "version"),
        ([&bytes[..8], &[9], &bytes[9..]].concat(), "checksum"),
        (bytes[..10].to_vec(), "not a file"),
    ] {
        let damaged = directory.path().join("damaged");
        std::fs::write(&damaged, change).unwrap();
        let error = PreparedGraphs::open(&damaged).unwrap_err().to_string();
        assert!(error.contains(complaint), "{error}");
    }
}

#[test]
fn odd_corpora_train_or_are_refused_never_panic() {
    // One cluster, a label without documents, documents without clusters.
    let config = MatcherConfig {
        clusters: 1,
        ..config()
    };
    let mut fixture = Fixture::new(config, 10);
    fixture.labels.push([]);
    fixture.train(&fixture.options()).unwrap();
    fixture.positives = Lists::from_rows(&vec![Vec::new(); 10]);
    fixture.labels = Lists::from_rows(&[Vec::new()]);
    fixture.train(&fixture.options()).unwrap();

    fixture.positives = Lists::from_rows(&vec![vec![1]; 10]);
    assert!(
        fixture
            .train(&fixture.options())
            .unwrap_err()
            .to_string()
            .contains("below the number of clusters")
    );
    fixture.positives = Lists::from_rows(&vec![vec![0]; 9]);
    assert!(
        fixture
            .train(&fixture.options())
            .unwrap_err()
            .to_string()
            .contains("one a document")
    );
    fixture.positives = Lists::from_rows(&vec![vec![0]; 10]);
    fixture.labels = Lists::from_rows(&[[10]]);
    assert!(
        fixture
            .train(&fixture.options())
            .unwrap_err()
            .to_string()
            .contains("document of a label")
    );
    let wider = TrainOptions {
        model: MatcherConfig {
            width: 9,
            ..fixture.config.clone()
        },
        ..fixture.options()
    };
    assert!(fixture.train(&wider).unwrap_err().to_string().contains("width"));
}

/// Two processes played by two threads: sums in rank order, everybody waits for everybody.
#[derive(Debug)]
struct Twins {
    meeting: std::sync::Barrier,
    table: std::sync::Mutex<[Vec<f64>; 2]>,
}

#[derive(Debug)]
struct Twin<'a> {
    twins: &'a Twins,
    rank: usize,
}

impl Collective for Twin<'_> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        2
    }

    fn all_reduce(&self, mut buffer: Buffer<'_>) -> Result<(), CollectiveError> {
        let mine: Vec<f64> = match &buffer {
            Buffer::F32(values) => values.iter().map(|&v| f64::from(v)).collect(),
            Buffer::F64(values) => values.to_vec(),
            Buffer::U64(values) => values.iter().map(|&v| v as f64).collect(),
        };
        self.twins.table.lock().unwrap()[self.rank] = mine;
        self.twins.meeting.wait();
        let sums: Vec<f64> = {
            let table = self.twins.table.lock().unwrap();
            table[0].iter().zip(&table[1]).map(|(a, b)| a + b).collect()
        };
        self.twins.meeting.wait();
        match &mut buffer {
            Buffer::F32(values) => values.iter_mut().zip(sums).for_each(|(v, s)| *v = s as f32),
            Buffer::F64(values) => values.copy_from_slice(&sums),
            Buffer::U64(values) => values.iter_mut().zip(sums).for_each(|(v, s)| *v = s as u64),
        }
        Ok(())
    }

    fn broadcast(&self, _root: usize, _buffer: Buffer<'_>) -> Result<(), CollectiveError> {
        Ok(())
    }
}

#[test]
fn two_processes_learn_what_one_would() {
    let fixture = Fixture::new(
        MatcherConfig {
            dropout: 0.0,
            ..config()
        },
        45,
    );
    let alone = fixture.train(&fixture.options()).unwrap();
    let twins = Twins {
        meeting: std::sync::Barrier::new(2),
        table: std::sync::Mutex::default(),
    };
    let together: Vec<TrainedMatcher> = std::thread::scope(|scope| {
        let ranks = [0, 1].map(|rank| {
            let (fixture, twins) = (&fixture, &twins);
            scope.spawn(move || {
                train_with(
                    fixture.data(),
                    &fixture.options(),
                    &Twin { twins, rank },
                    &mut |_| {},
                )
                .unwrap()
            })
        });
        ranks.map(|rank| rank.join().unwrap()).into()
    });
    assert!(
        together[0].matcher.tensors() == together[1].matcher.tensors(),
        "the twins agree bit for bit"
    );
    let (one, two) = (
        alone.validation_loss.unwrap(),
        together[0].validation_loss.unwrap(),
    );
    assert!((one - two).abs() < 1e-3 * one, "{one} {two}");
}
