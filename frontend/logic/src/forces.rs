//! A force layout for the KeyGraph: vertices push each other away, edges pull, the middle holds.
//!
//! At most a few dozen vertices are drawn, so every pair is visited. The same graph always comes to rest in the same place:
//! the start is a sunflower spiral in vertex order and nothing is random. A graph that follows another starts where that
//! one stood ([`Layout::resume`]), so that a word more in the text does not turn the picture round.

/// Who is drawn and how large: a shape and, below it, a name that may be wider.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Body {
    pub radius: f32,
    /// Half the width of the name.
    pub reach: f32,
}

impl Body {
    fn half_width(self) -> f32 {
        self.radius.max(self.reach)
    }
}

/// A spring between two bodies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spring {
    pub source: usize,
    pub target: usize,
    pub weight: f32,
}

/// The layout while it moves.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    bodies: Vec<Body>,
    springs: Vec<Spring>,
    degree: Vec<f32>,
    at: Vec<[f32; 2]>,
    speed: Vec<[f32; 2]>,
    held: Option<usize>,
    /// Falls from 1 to 0 while the layout cools down.
    heat: f32,
}

const REPULSION: f32 = 600.0;
const PULL: f32 = 0.10;
const GRAVITY: f32 = 0.02;
const REST: f32 = 62.0;
/// A vertex with so few edges is held by them to the end.
const FEW: f32 = 2.0;
/// Height of a name, the free space around it, and how hard it is defended.
const NAME_HEIGHT: f32 = 13.0;
const GAP: f32 = 3.0;
const STIFFNESS: f32 = 3.0;
const FRICTION: f32 = 0.72;
const COOLING: f32 = 0.985;
const COLD: f32 = 0.015;
/// How hot a layout is that starts from known places: warm enough to make room, too cold to fly about.
const WARM: f32 = 0.35;

impl Layout {
    /// A fresh layout. Springs that name a body that is not there are left out.
    pub fn new(bodies: Vec<Body>, springs: Vec<Spring>) -> Self {
        let springs: Vec<Spring> = springs
            .into_iter()
            .filter(|spring| {
                spring.source < bodies.len() && spring.target < bodies.len() && spring.source != spring.target
            })
            .collect();
        let mut degree = vec![0.0; bodies.len()];
        for spring in &springs {
            degree[spring.source] += 1.0;
            degree[spring.target] += 1.0;
        }
        let at = (0..bodies.len())
            .map(|index| {
                let angle = index as f32 * 2.399_963;
                let reach = 26.0 * (index as f32 + 0.5).sqrt();
                [reach * angle.cos(), reach * angle.sin()]
            })
            .collect();
        let speed = vec![[0.0; 2]; bodies.len()];
        Self {
            bodies,
            springs,
            degree,
            at,
            speed,
            held: None,
            heat: 1.0,
        }
    }

    /// A layout some of whose bodies have a place already; the others start amid those they are joined to. When fewer than half are known it
    /// is a fresh layout.
    pub fn resume(bodies: Vec<Body>, springs: Vec<Spring>, known: &[Option<[f32; 2]>]) -> Self {
        let mut layout = Self::new(bodies, springs);
        let known = |body: usize| known.get(body).copied().flatten();
        let count = layout.bodies.len();
        if (0..count).filter(|&body| known(body).is_some()).count() * 2 < count {
            return layout;
        }
        let mut middle = vec![([0.0f32; 2], 0.0f32); count];
        for spring in &layout.springs {
            for (body, other) in [(spring.source, spring.target), (spring.target, spring.source)] {
                if let Some([x, y]) = known(other) {
                    let (sum, joined) = &mut middle[body];
                    *sum = [sum[0] + x, sum[1] + y];
                    *joined += 1.0;
                }
            }
        }
        for (body, (sum, joined)) in middle.into_iter().enumerate() {
            if let Some(place) = known(body) {
                layout.at[body] = place;
            } else if joined > 0.0 {
                // A little of its own place in the spiral keeps newcomers from sitting on one another.
                let own = layout.at[body];
                layout.at[body] = [sum[0] / joined + 0.1 * own[0], sum[1] / joined + 0.1 * own[1]];
            }
        }
        layout.heat = WARM;
        layout
    }

    pub fn positions(&self) -> &[[f32; 2]] {
        &self.at
    }

    /// Whether it starts from nowhere and has far to go.
    pub fn is_fresh(&self) -> bool {
        self.heat > WARM
    }

    /// Whether another step would still move something.
    pub fn is_moving(&self) -> bool {
        self.heat > COLD && !self.bodies.is_empty()
    }

    /// Holds a body at a place until [`Layout::release`]; the others give way.
    pub fn hold(&mut self, body: usize, at: [f32; 2]) {
        if body < self.bodies.len() && at.iter().all(|value| value.is_finite()) {
            self.held = Some(body);
            self.at[body] = at;
            self.speed[body] = [0.0; 2];
            self.heat = self.heat.max(WARM);
        }
    }

    pub fn release(&mut self) {
        self.held = None;
    }

    /// Runs until it is cold: for people who asked for no motion, and for pictures.
    pub fn settle(&mut self) {
        while self.is_moving() {
            self.step();
        }
    }

    /// One step of the simulation.
    pub fn step(&mut self) {
        let count = self.bodies.len();
        let mut force = vec![[0.0f32; 2]; count];
        for one in 0..count {
            for other in one + 1..count {
                let mut dx = self.at[one][0] - self.at[other][0];
                let dy = self.at[one][1] - self.at[other][1];
                if dx.abs() + dy.abs() < 1e-3 {
                    dx = 0.1 * (1.0 + one as f32);
                }
                let apart = dx.hypot(dy);
                let push = REPULSION / (apart * apart);
                let (mut fx, mut fy) = (dx / apart * push, dy / apart * push);
                // Names must not lie on one another: they are pushed apart the shorter way.
                let (first, second) = (self.bodies[one], self.bodies[other]);
                let over = first.half_width() + second.half_width() + GAP - dx.abs();
                let under = first.radius + second.radius + NAME_HEIGHT + GAP - dy.abs();
                if over > 0.0 && under > 0.0 {
                    if over < under {
                        fx += over.copysign(dx) * STIFFNESS;
                    } else {
                        fy += under.copysign(dy) * STIFFNESS;
                    }
                }
                force[one][0] += fx;
                force[one][1] += fy;
                force[other][0] -= fx;
                force[other][1] -= fy;
            }
        }
        // While it is hot springs are short: who is joined gathers first, then room is made.
        let rest = REST * (1.0 - self.heat);
        for spring in &self.springs {
            let dx = self.at[spring.target][0] - self.at[spring.source][0];
            let dy = self.at[spring.target][1] - self.at[spring.source][1];
            let apart = dx.hypot(dy).max(1e-3);
            // A vertex with many edges would be torn apart by full-strength springs; and in a dense graph they let go as it
            // cools: they have said who is near whom, now names make room.
            let busiest = self.degree[spring.source]
                .min(self.degree[spring.target])
                .max(1.0);
            let kept = (FEW / busiest).min(1.0);
            let grip = (kept + (1.0 - kept) * self.heat) / busiest.powf(0.8);
            let pull = PULL * grip * spring.weight.max(1.0).sqrt() * (apart - rest);
            let (fx, fy) = (dx / apart * pull, dy / apart * pull);
            force[spring.source][0] += fx;
            force[spring.source][1] += fy;
            force[spring.target][0] -= fx;
            force[spring.target][1] -= fy;
        }
        for body in 0..count {
            if self.held == Some(body) {
                continue;
            }
            for axis in 0..2 {
                let pull = force[body][axis] - GRAVITY * self.at[body][axis];
                let speed = (self.speed[body][axis] + pull) * FRICTION;
                self.speed[body][axis] = speed.clamp(-30.0, 30.0);
                self.at[body][axis] += self.speed[body][axis] * self.heat;
            }
        }
        self.heat *= COOLING;
    }

    /// The smallest rectangle around everything, as `[left, top, width, height]`, with `margin` on each side.
    pub fn bounds(&self, margin: f32) -> [f32; 4] {
        let mut low = [f32::INFINITY; 2];
        let mut high = [f32::NEG_INFINITY; 2];
        for (at, body) in self.at.iter().zip(&self.bodies) {
            let half = [body.half_width(), body.radius + NAME_HEIGHT];
            for axis in 0..2 {
                low[axis] = low[axis].min(at[axis] - half[axis]);
                high[axis] = high[axis].max(at[axis] + half[axis]);
            }
        }
        if self.at.is_empty() {
            return [-100.0, -75.0, 200.0, 150.0];
        }
        [
            low[0] - margin,
            low[1] - margin,
            high[0] - low[0] + 2.0 * margin,
            high[1] - low[1] + 2.0 * margin,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(layout: &Layout, one: usize, other: usize) -> f32 {
        let at = layout.positions();
        (at[one][0] - at[other][0]).hypot(at[one][1] - at[other][1])
    }

    fn two_triangles() -> Layout {
        let springs = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)];
        Layout::new(
            vec![
                Body {
                    radius: 5.0,
                    reach: 0.0
                };
                6
            ],
            springs
                .map(|(source, target)| Spring {
                    source,
                    target,
                    weight: 1.0,
                })
                .to_vec(),
        )
    }

    #[test]
    fn joined_vertices_come_to_rest_closer_than_strangers() {
        let mut layout = two_triangles();
        layout.settle();
        assert!(distance(&layout, 0, 1) < distance(&layout, 0, 4));
        assert!(distance(&layout, 3, 5) < distance(&layout, 2, 3));
    }

    #[test]
    fn the_same_graph_comes_to_rest_in_the_same_place() {
        let (mut one, mut other) = (two_triangles(), two_triangles());
        one.settle();
        other.settle();
        assert_eq!(one.positions(), other.positions());
    }

    #[test]
    fn a_graph_that_grows_by_one_vertex_stays_where_it_is() {
        let mut before = two_triangles();
        before.settle();
        let known: Vec<_> = before.positions().iter().copied().map(Some).collect();
        let bodies = vec![
            Body {
                radius: 5.0,
                reach: 0.0
            };
            7
        ];
        let mut springs = before.springs.clone();
        springs.push(Spring {
            source: 6,
            target: 0,
            weight: 1.0,
        });
        let mut after = Layout::resume(bodies, springs, &known);
        assert!(after.is_moving());
        after.settle();
        for (before, after) in before.positions().iter().zip(after.positions()) {
            assert!(
                (before[0] - after[0]).hypot(before[1] - after[1]) < 40.0,
                "{before:?} {after:?}"
            );
        }
        assert!(distance(&after, 6, 0) < 2.0 * REST, "{}", distance(&after, 6, 0));
    }

    #[test]
    fn strangers_start_afresh() {
        let fresh = two_triangles();
        let resumed = Layout::resume(fresh.bodies.clone(), fresh.springs.clone(), &[Some([9.0, 9.0])]);
        assert_eq!(resumed, fresh);
    }

    #[test]
    fn every_layout_comes_to_rest_with_finite_places() {
        for count in [0, 1, 2, 40, 120] {
            let springs = (1..count)
                .map(|target| Spring {
                    source: 0,
                    target,
                    weight: 3.0,
                })
                .collect();
            let mut layout = Layout::new(
                vec![
                    Body {
                        radius: 8.0,
                        reach: 0.0
                    };
                    count
                ],
                springs,
            );
            layout.settle();
            assert!(!layout.is_moving());
            assert!(layout.positions().iter().flatten().all(|value| value.is_finite()));
            assert!(layout.bounds(10.0).iter().all(|value| value.is_finite()));
        }
    }

    #[test]
    fn names_of_a_dense_graph_hardly_lie_on_one_another() {
        let bodies: Vec<Body> = (0..40)
            .map(|index| Body {
                radius: 4.0 + 8.0 / (1.0 + index as f32).sqrt(),
                reach: 12.0 + (index * 7 % 30) as f32,
            })
            .collect();
        let pairs = (0..40).flat_map(|source| (source + 1..40).map(move |target| (source, target)));
        let springs: Vec<Spring> = pairs
            .filter(|(source, target)| source * target % 5 == 1 || source + target < 22)
            .map(|(source, target)| Spring {
                source,
                target,
                weight: 1.0 + (target % 3) as f32,
            })
            .collect();
        assert!(springs.len() > 200);
        let mut layout = Layout::new(bodies.clone(), springs);
        layout.settle();
        let at = layout.positions();
        let mut covered = 0.0;
        for one in 0..40 {
            for other in one + 1..40 {
                let wide =
                    bodies[one].half_width() + bodies[other].half_width() - (at[one][0] - at[other][0]).abs();
                let tall = bodies[one].radius + bodies[other].radius + NAME_HEIGHT
                    - (at[one][1] - at[other][1]).abs();
                covered += wide.max(0.0) * tall.max(0.0);
            }
        }
        let all: f32 = bodies
            .iter()
            .map(|body| 2.0 * body.half_width() * (2.0 * body.radius + NAME_HEIGHT))
            .sum();
        assert!(covered < 0.03 * all, "{covered} of {all} covered");
        let [_, _, width, height] = layout.bounds(0.0);
        assert!(width * height < 4.0 * all, "{width} × {height} for {all}");
    }

    #[test]
    fn a_held_vertex_stays_where_it_is_held() {
        let mut layout = two_triangles();
        layout.hold(2, [500.0, -40.0]);
        layout.settle();
        assert_eq!(layout.positions()[2], [500.0, -40.0]);
    }

    #[test]
    fn a_spring_to_nowhere_is_left_out() {
        let mut layout = Layout::new(
            vec![Body {
                radius: 1.0,
                reach: 0.0,
            }],
            vec![Spring {
                source: 0,
                target: 9,
                weight: 1.0,
            }],
        );
        layout.settle();
        assert_eq!(layout.positions().len(), 1);
    }
}
